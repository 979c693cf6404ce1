extension LimitCase {
  /// Limits on work, whose requests use what the daemon counts.
  static let measured: [LimitCase] = [
    requests("maxDefinitionBytesPerUser", "bytes of definitions", nil) { _ in
      [array("a"), collection, composed("p", ["a", "c"])]
    },
    requests("maxTotalDefinitionBytes", "bytes of definitions", nil) { _ in
      [array("a"), collection, composed("p", ["a", "c"])]
    },
    requests("maxBytes", "bytes of elements", nil) { _ in
      [array("a")] + [1000, 200].map { ("insert", #"{"feed":"a","element":\#(text($0))}"#) }
    },
    requests("maxBytesPerUser", "bytes of two feeds", nil) { _ in
      [array("a"), array("b")] + ["a", "b"].map { ("insert", #"{"feed":"\#($0)","element":\#(text(1000))}"#) }
    },
    requests("maxTotalBytes", "bytes of two feeds", nil) { _ in
      [array("a"), array("b")] + ["a", "b"].map { ("insert", #"{"feed":"\#($0)","element":\#(text(1000))}"#) }
    },
    requests("maxQueryBytes", "bytes of joined elements", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","elements":[1,\#(text(2000))]}"#),
        ("query", #"{"feed":"a","path":"$..id"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of a query", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","element":\#(list(2000))}"#),
        ("query", #"{"feed":"a","path":"$[?@[?@ == 1999]]"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of a query over a joined document", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","element":\#(list(2000))}"#),
        ("query", #"{"feed":"a","path":"$[*][?@ == $[0][1999]]"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of the filter of a bin", nil) { _ in
      [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v[?@ == 1999]"}]}"#),
        ("update", #"{"feed":"c","element":{"id":1,"v":\#(list(2000))}}"#),
      ]
    },
    requests("maxRequestSteps", "steps of the filter of a bin over many elements", nil) { _ in
      [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v[?@ == 1]"}]}"#),
        ("update", #"{"feed":"c","elements":\#(list(40) { #"{"id":\#($0),"v":\#(list(50))}"# })}"#),
      ]
    },
    requests("maxRequestSteps", "steps of the filter of a delete", nil) { _ in
      [
        collection, ("update", #"{"feed":"c","elements":\#(list(40) { #"{"id":\#($0),"v":\#(list(50))}"# })}"#),
        ("delete", #"{"feed":"c","where":"@.v[?@ == 49]"}"#),
      ]
    },
    requests("maxRequestSteps", "steps of patches of one long element", nil) { _ in
      [
        collection, ("update", #"{"feed":"c","element":{"id":1,"v":\#(list(2000))}}"#),
        ("patch", #"{"feed":"c","patches":\#(list(9) { #"{"id":1,"patch":{"n":\#($0)}}"# })}"#),
      ]
    },
    requests("maxDerivedSteps", "steps of two views", nil) { _ in
      [array("a")] + (0..<2).map { ("define", #"{"feed":"v\#($0)","kind":"view","of":"a","filter":"@..[?@ == 1]"}"#) }
    },
    requests("maxDerivedSteps", "steps of a slots feed", nil) { _ in
      slots(#""contents":{"x":"a"},"pattern":["x"],"fixed":{"1":"y","2":"y"}"#)
    },
  ]
}
