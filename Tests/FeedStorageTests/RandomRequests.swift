import TestSupport

/// Makes random mutations of all methods on a few feeds; most are valid.
struct RandomRequests {
  var random: SeededRandom

  /// Definitions of one feed of each kind, and of collections with all members of bins.
  static let definitions = [
    #"{"feed":"c","kind":"collection","multiple":true,"retain":{"count":400},"bins":[{"name":"hi","filter":"@.n > 50","sort":[{"by":"$.n","order":"descending"}]},{"name":"rest"}]}"#,
    #"{"feed":"old","kind":"collection","retain":{"seconds":2},"type":"$.t"}"#,
    #"{"feed":"x","kind":"collection","exclusive":true,"bins":[{"name":"a","filter":"@.t == 'A'","sort":[{"by":"$.s"}]},{"name":"b","filter":"@.t == 'B'"},{"name":"z"}]}"#,
    #"{"feed":"list","kind":"array","type":"$.t","multiple":true}"#,
    #"{"feed":"keyed","kind":"array","id":"$.id","retain":{"count":60,"seconds":20,"until":"$.x"}}"#,
    #"{"feed":"one","kind":"single"}"#,
    #"{"feed":"all","kind":"composed","children":["one","c","list","keyed"]}"#,
    #"{"feed":"tabs","kind":"segmented","children":["x","c/hi","all"]}"#,
    #"{"feed":"slots","kind":"slots","contents":{"L":"list","C":"c/hi"},"pattern":["L","L","C"],"repeatables":["L"]}"#,
  ]

  /// Other definitions of the same feeds.
  private static let redefinitions = [
    #"{"feed":"c","kind":"collection","multiple":true,"replace":true,"retain":{"count":300},"bins":[{"name":"rest"},{"name":"hi","filter":"@.n > 30","sort":[{"by":"$.s"}]}]}"#,
    #"{"feed":"c","kind":"collection","multiple":true,"replace":true,"bins":[{"name":"hi","filter":"@.n > 50"},{"name":"rest"}]}"#,
    #"{"feed":"x","kind":"collection","replace":true,"bins":[{"name":"z","sort":[{"by":"$.n"}]}]}"#,
    #"{"feed":"list","kind":"array","type":"$.s","replace":true,"multiple":true}"#,
    #"{"feed":"keyed","kind":"array","type":"$.t","replace":true}"#,
    #"{"feed":"keyed","kind":"array","id":"$.id","type":"$.t","retain":{"until":"$.x"},"replace":true}"#,
    #"{"feed":"old","kind":"collection","retain":{"seconds":3,"until":"$.x"},"type":"$.t","replace":true}"#,
    #"{"feed":"all","kind":"composed","replace":true,"children":["c","one"]}"#,
  ]

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

  mutating func element() -> String {
    #"{"id":\#(number(0..<500)),"n":\#(number(0..<100)),"t":"\#(["A", "B", "C"][number(0..<3)])","s":"\#(number(0..<20))"\#(time())}"#
  }

  /// Sometimes a time at which the element expires, of either form, past times included.
  private mutating func time() -> String {
    switch number(0..<5) {
    case 0: #","x":\#(number(0..<90))"#
    case 1: #","x":"1970-01-01T00:00:\#(number(10..<60)).\#(number(0..<10))Z""#
    default: ""
    }
  }

  mutating func elements(_ count: Int) -> String {
    "[" + (0..<count).map { _ in element() }.joined(separator: ",") + "]"
  }

  /// One request.
  mutating func next() -> String {
    let (method, params) = operation()
    return DurableEngine.request(method, params)
  }

  private mutating func operation() -> (String, String) {
    let collection = ["c", "old", "x"][number(0..<3)]
    switch number(0..<100) {
    case 0..<40: return ("update", #"{"feed":"\#(collection)","element":\#(element())}"#)
    case 40..<48: return ("update", #"{"feed":"\#(collection)","elements":\#(elements(number(1..<30)))}"#)
    case 48..<56: return ("delete", #"{"feed":"\#(collection)","id":\#(number(0..<500))}"#)
    case 56..<59:
      return ("set", #"{"feed":"\#(["list", "x"][number(0..<2)])","elements":\#(elements(number(0..<40)))}"#)
    case 59..<63: return keyed()
    case 63..<67: return ("insert", #"{"feed":"list","elements":\#(elements(2)),"at":[\#(number(0..<3)),0]}"#)
    case 67..<72: return ("move", #"{"feed":"list","from":\#(number(0..<20)),"to":\#(number(0..<20))}"#)
    case 72..<75: return ("remove", #"{"feed":"list","at":[\#(number(0..<10))]}"#)
    case 75..<78: return ("put", #"{"feed":"one","element":\#(number(0..<3) == 0 ? "null" : element())}"#)
    case 78..<82: return ("activate", #"{"feed":"tabs","child":\#(number(-1..<3))}"#)
    case 82..<86:
      let feed = ["c", "c/hi", "c/rest"][number(0..<3)]
      return (["select", "deselect"][number(0..<2)], #"{"feed":"\#(feed)","at":[[0,\#(number(0..<4))]]}"#)
    case 86..<88: return ("select", #"{"feed":"list","at":[[0,\#(number(0..<4))],[0,1]]}"#)
    case 88..<90: return ("define", Self.redefinitions[number(0..<Self.redefinitions.count)])
    case 90..<92: return ("watch", #"{"feed":"\#(["c", "list", "tabs", "slots", "x/z", "keyed"][number(0..<6)])"}"#)
    default: return ("transaction", transaction())
    }
  }

  /// A request on the array with identity.
  private mutating func keyed() -> (String, String) {
    switch number(0..<6) {
    case 0: return ("set", #"{"feed":"keyed","elements":\#(elements(number(0..<20)))}"#)
    case 1: return ("delete", #"{"feed":"keyed","ids":[\#(number(0..<500)),\#(number(0..<500))]}"#)
    case 2: return ("insert", #"{"feed":"keyed","element":\#(element()),"at":0}"#)
    default: return ("update", #"{"feed":"keyed","elements":\#(elements(number(1..<8)))}"#)
    }
  }

  private mutating func transaction() -> String {
    let operations = (0..<number(1..<5)).map { _ -> String in
      var (method, params) = operation()
      while ["watch", "transaction", "select", "deselect"].contains(method) { (method, params) = operation() }
      return #"{"method":"\#(method)","params":\#(params)}"#
    }
    return #"{"ops":["# + operations.joined(separator: ",") + "]}"
  }
}
