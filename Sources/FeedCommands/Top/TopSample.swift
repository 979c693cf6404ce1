import FeedJSON

/// The state of the daemon at one time: the results of `stats` and `clients`.
struct TopSample: Equatable {
  /// One connection.
  struct Client: Equatable {
    var name: String
    var uid: Int
    var pid: Int
    var queued: Int
    var held: Int
    var lag: Int
    var resets: Int
    var requests: Int
    var watches: Int
  }

  /// The time in nanoseconds of a monotonic clock.
  var time: UInt64
  /// The numeric members of `stats`.
  var numbers: [String: Int] = [:]
  var clients: [Client] = []
  /// The results as JSON: of `stats`, and the list of `clients`.
  private(set) var statsText = "{}"
  private(set) var clientsText = "[]"

  /// Parses the result of `stats`.
  init(time: UInt64, stats: JSONView) {
    self.time = time
    statsText = String(decoding: stats.compactText, as: UTF8.self)
    for member in stats.members { if let value = member.value.int { numbers[member.key.string ?? ""] = value } }
  }

  /// Parses the result of `clients`.
  mutating func take(clients result: JSONView) {
    guard let list = result.member("clients") else { return }
    clientsText = String(decoding: list.compactText, as: UTF8.self)
    clients = list.elements.map { row in
      func number(_ name: StaticString) -> Int { row.member(name)?.int ?? 0 }
      return Client(
        name: row.member("name")?.string ?? "", uid: number("uid"), pid: number("pid"), queued: number("queued"),
        held: number("held"), lag: number("lag"), resets: number("resets"), requests: number("requests"),
        watches: row.member("watches")?.count ?? 0)
    }
  }
}
