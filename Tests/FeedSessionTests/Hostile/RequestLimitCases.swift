extension LimitCase {
  /// Limits whose requests use exactly as much as is said.
  static let counted: [LimitCase] = [
    requests("maxDepth", "levels of an element", 12) { count in
      let deep = String(repeating: "[", count: count - 2) + String(repeating: "]", count: count - 2)
      return [array("a"), ("insert", #"{"feed":"a","element":\#(deep)}"#)]
    },
    requests("maxFeeds", "feeds", 3) { count in (0..<count).map { array("f\($0)") } },
    requests("maxFeedsPerUser", "feeds", 3) { count in (0..<count).map { array("f\($0)") } },
    requests("maxBins", "bins", 3) { count in
      [("define", #"{"feed":"c","kind":"collection","bins":\#(list(count) { #"{"name":"b\#($0)"}"# })}"#)]
    },
    requests("maxSections", "children", 3) { count in
      (0..<count).map { array("f\($0)") } + [composed("p", (0..<count).map { "f\($0)" })]
    },
    requests("maxSections", "sections by value", 3) { count in
      [
        ("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#),
        ("update", #"{"feed":"c","elements":\#(list(count) { #"{"id":\#($0),"s":\#($0)}"# })}"#),
      ]
    },
    requests("maxRepeats", "parents of one feed", 3) { count in
      [array("a")] + (0..<count).map { composed("p\($0)", ["a"]) } + [composed("top", (0..<count).map { "p\($0)" })]
    },
    requests("maxLevels", "feeds in feeds", 3) { count in
      [array("f0")] + (1...count).map { composed("f\($0)", ["f\($0 - 1)"]) }
    },
    requests("maxElements", "elements", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxElementsPerUser", "elements of two feeds", 3) { count in
      [
        array("a"), array("b"), ("insert", #"{"feed":"a","element":1}"#),
        ("insert", #"{"feed":"b","elements":\#(list(count - 1))}"#),
      ]
    },
    requests("maxTotalElements", "elements of two feeds", 3) { count in
      [
        array("a"), collection, ("insert", #"{"feed":"a","element":1}"#),
        ("update", #"{"feed":"c","elements":\#(list(count - 1) { #"{"id":\#($0)}"# })}"#),
      ]
    },
    requests("maxElementBytes", "bytes of an element", 60) { count in
      [array("a"), ("insert", #"{"feed":"a","element":\#(text(count - 2))}"#)]
    },
    requests("maxElementBytes", "bytes of a patched element", 60) { count in
      [collection, ("update", #"{"feed":"c","element":{"id":1}}"#)]
        + [("patch", #"{"feed":"c","id":1,"patch":{"a":\#(text(count - 15))}}"#)]
    },
    requests("maxDefinitionBytes", "bytes of a definition", 1024) { count in
      let members = #"{"feed":"a","kind":"array""#
      return [("define", members + String(repeating: " ", count: count - members.utf8.count - 1) + "}")]
    },
    requests("maxDefinitionBytes", "bytes of a definition in a transaction", 1024) { count in
      let members = #"{"feed":"a","kind":"array""#
      let padded = members + String(repeating: " ", count: count - members.utf8.count - 1) + "}"
      return [("transaction", #"{"ops":[{"method":"define","params":\#(padded)}]}"#)]
    },
    requests("maxDefinitionEntries", "children", 3) { count in
      (0..<count).map { array("f\($0)") } + [composed("p", (0..<count).map { "f\($0)" })]
    },
    requests("maxDefinitionEntries", "contents", 3) { count in
      let contents = (0..<count).map { "\"t\($0)\":\"f\($0)\"" }.joined(separator: ",")
      return (0..<count).map { array("f\($0)") }
        + slots(#""contents":{\#(contents)},"pattern":["t0"]"#)
    },
    requests("maxDefinitionEntries", "pattern", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":\#(list(count) { _ in "\"x\"" })"#)
    },
    requests("maxDefinitionEntries", "header", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":["x"],"header":\#(list(count) { _ in "\"x\"" })"#)
    },
    requests("maxDefinitionEntries", "repeatables", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":["x"],"repeatables":\#(list(count) { "\"t\($0)\"" })"#)
    },
    requests("maxDefinitionEntries", "fixed", 3) { count in
      slots(
        #""contents":{"x":"a"},"pattern":["x"],"fixed":{\#((0..<count).map { "\"\($0)\":\"y\"" }.joined(separator: ","))}"#
      )
    },
    requests("maxWatches", "watches", 3) { count in
      (0..<count).map { array("f\($0)") } + (0..<count).map { ("watch", #"{"feed":"f\#($0)"}"#) }
    },
    requests("maxWatchesPerUser", "watches", 3) { count in
      (0..<count).map { array("f\($0)") } + (0..<count).map { ("watch", #"{"feed":"f\#($0)"}"#) }
    },
    requests("maxRequestRows", "inserted rows", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxRequestRows", "deleted rows", 3) { count in
      [collection] + (0..<count).map { ("update", #"{"feed":"c","element":{"id":\#($0)}}"#) }
        + [("delete", #"{"feed":"c","where":"@.id >= 0"}"#)]
    },
    requests("maxSelected", "rows selected at once", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#), ("select", #"{"feed":"a","all":true}"#)]
    },
    requests("maxSelected", "rows selected one after another", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
        + (0..<count).map { ("select", #"{"feed":"a","at":[0,\#($0)]}"#) }
    },
    requests("maxSelectedPerUser", "selected rows of two views", 3) { count in
      selections(count)
    },
    requests("maxTotalSelected", "selected rows of two views", 3) { count in
      selections(count)
    },
    requests("maxViewRowsPerUser", "rows that a new view keeps", 6) { count in
      viewRows(count) + [sorted("w", of: "b")]
    },
    requests("maxViewRowsPerUser", "rows inserted below a view", 6) { count in
      [array("a"), sorted("v", of: "a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxTotalViewRows", "rows that a new view keeps", 6) { count in
      viewRows(count) + [sorted("w", of: "b")]
    },
    requests("maxTotalViewRows", "rows inserted below two views", 6) { count in
      [array("a"), array("b"), ("insert", #"{"feed":"b","elements":\#(list(3))}"#)]
        + [sorted("v", of: "a"), sorted("w", of: "b")]
        + [("insert", #"{"feed":"a","elements":\#(list(count - 3))}"#)]
    },
    requests("maxPathBytes", "bytes of a path", 40) { count in
      [collection, ("query", #"{"feed":"c","path":"$..\#(String(repeating: "x", count: count - 5))"}"#)]
    },
    requests("maxPathBytes", "bytes of the filter of a delete", 40) { count in
      [collection, ("delete", #"{"feed":"c","where":"@.\#(String(repeating: "x", count: count - 4))"}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a bin", 114) { count in
      [("define", #"{"feed":"c","kind":"collection","bins":[{"name":"b","filter":"@.\#(name(count - 108))"}]}"#)]
    },
    requests("maxFilterBytes", "memory of the filters of two bins", 222) { count in
      let bins = #"[{"name":"a","filter":"@.xxx"},{"name":"b","filter":"@.\#(name(count - 219))"}]"#
      return [("define", #"{"feed":"c","kind":"collection","bins":\#(bins)}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a view", 114) { count in
      [array("a"), ("define", #"{"feed":"v","kind":"view","of":"a","filter":"@.\#(name(count - 108))"}"#)]
    },
    requests("maxFilterBytes", "bytes of a long filter", 16_000) { count in
      let bin = #"{"name":"b","filter":"@.\#(name((count + 7) / 8 - 2))"}"#
      return [("define", #"{"feed":"c","kind":"collection","bins":[\#(bin)]}"#)]
    },
    requests("maxFilterBytes", "memory of a query", 200) { count in
      [collection, ("query", #"{"feed":"c","path":"$[?@.\#(name(count - 192))]"}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a delete", 114) { count in
      [collection, ("delete", #"{"feed":"c","where":"@.\#(name(count - 108))"}"#)]
    },
    requests("maxFrame", "bytes of an answer", 5000) { count in
      let around = #"{"jsonrpc":"2.0","id":1,"result":{"nodes":["","",""],"revision":3}}"#.utf8.count
      return [
        array("a"), ("insert", #"{"feed":"a","elements":[\#(text(1500)),\#(text(1500))]}"#),
        ("insert", #"{"feed":"a","element":\#(text(count - around - 3000))}"#),
        ("query", #"{"feed":"a","path":"$[*]"}"#),
      ]
    },
  ]
}
