/// What a daemon must hold after some number of the kill test's requests, worked out by hand.
///
/// Request `k` is one transaction: it adds `k` to the collection `log`, which keeps the last 300, and puts another version of
/// one of sixty elements into the collection `c`, whose bin `hi` is sorted and whose bin `lo` is not; some versions belong
/// to neither.
struct KillModel {
  static let definitions = [
    #"{"feed":"log","kind":"collection","id":"$.k","retain":{"count":300}}"#,
    #"{"feed":"c","kind":"collection","bins":[{"name":"hi","filter":"@.n >= 50000000","sort":[{"by":"$.n","order":"descending"}]},{"name":"lo","filter":"@.n < 30000000"}]}"#,
    #"{"feed":"all","kind":"composed","children":["log","c"]}"#,
  ]

  /// The last request that is in.
  private(set) var last = 0
  private var elements: [Int: (n: Int, k: Int)] = [:]
  /// The elements of `lo` in the order in which they came into it.
  private var low: [Int] = []

  private static func identity(_ k: Int) -> Int { k * 31 % 60 }
  /// A number that no other request has.
  private static func number(_ k: Int) -> Int { k * 7919 % 997 * 100_000 + k % 100_000 }

  private static func element(_ k: Int) -> String {
    #"{"id":\#(identity(k)),"n":\#(number(k)),"k":\#(k)}"#
  }

  static func request(_ k: Int) -> String {
    let operations = [
      #"{"method":"update","params":{"feed":"log","element":{"k":\#(k)}}}"#,
      #"{"method":"update","params":{"feed":"c","element":\#(element(k))}}"#,
    ]
    return
      #"{"jsonrpc":"2.0","id":\#(k),"method":"transaction","params":{"ops":[\#(operations.joined(separator: ","))]}}"#
  }

  /// Goes on to request `k`.
  mutating func advance(to k: Int) {
    while last < k {
      last += 1
      let (id, n) = (Self.identity(last), Self.number(last))
      elements[id] = n >= 50_000_000 || n < 30_000_000 ? (n, last) : nil
      if n >= 30_000_000 {
        low.removeAll { $0 == id }
      } else if !low.contains(id) {
        low.append(id)
      }
    }
  }

  /// The rows of `all`, section by section.
  var sections: [[String]] {
    let log = (max(1, last - 299)..<(last + 1)).map { #"{"k":\#($0)}"# }
    let high = elements.values.filter { $0.n >= 50_000_000 }.sorted { $0.n > $1.n }.map { Self.element($0.k) }
    return [log, high, low.compactMap { elements[$0].map { Self.element($0.k) } }]
  }
}
