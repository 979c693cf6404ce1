/// The bytes of answers that each user got in this turn.
///
/// A request of a few bytes may have an answer of megabytes. When the answers of a user took its share, further reads by the
/// same user wait for the next turn. Its pings and changes do not, and neither do requests of other users.
struct AnswerShares {
  private var users: [UInt32: Int] = [:]

  /// The bytes of one user in a turn. Its last answer may be longer. They are more than ``turnBytes``, so that a user whose answers
  /// are ready can still read.
  private static let share = 2 << 20
  /// The bytes in a turn, of all users, after which answers that are ready, and requests of a stored batch, wait for the next
  /// turn.
  static let turnBytes = 1 << 20
  /// Fewer bytes for one connection are not counted, so that most connections cost nothing.
  private static let fewBytes = 16 << 10

  mutating func beginTurn() {
    if !users.isEmpty { users.removeAll(keepingCapacity: true) }
  }

  func isUsedUp(by uid: UInt32) -> Bool { !users.isEmpty && users[uid] ?? 0 >= Self.share }

  mutating func add(_ bytes: Int, of uid: UInt32) {
    if bytes >= Self.fewBytes { users[uid, default: 0] += bytes }
  }
}

extension Engine {
  /// Whether the answers of this turn took its bytes.
  var hasLongAnswers: Bool { outbox.size >= AnswerShares.turnBytes }
}
