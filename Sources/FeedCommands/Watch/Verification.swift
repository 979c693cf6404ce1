import FeedClient
import FeedJSON

/// Compares a mirror with the daemon's digest of the same revision: a pure state machine.
///
/// The answer may come before the deltas that lead to its revision; it is then kept until the mirror is there. If the
/// mirror has passed the revision already, another digest is requested.
struct Verification: Equatable {
  /// The daemon's answer to `verify`.
  struct Answer: Equatable {
    var revision: UInt64
    var counts: [Int]
    var digest: String
  }

  /// How long the feed must be quiet before the daemon is asked.
  static let quiet: UInt64 = 200_000_000

  private var pendingID: Int?
  private var answer: Answer?
  private var changedAt: UInt64?
  /// The last answer that was found equal.
  private(set) var verified: Answer?

  /// The mirror has changed.
  mutating func changed(now: UInt64) { changedAt = now }

  /// The connection was lost, and with it the answer.
  mutating func lost() {
    pendingID = nil
    answer = nil
  }

  /// Whether all changes are verified.
  var isComplete: Bool { changedAt == nil }

  /// When to ask; nil while there is nothing to ask.
  var deadline: UInt64? { pendingID == nil && answer == nil ? changedAt.map { $0 &+ Self.quiet } : nil }

  /// Whether it is time to ask.
  /// - Parameter atOnce: whether to ask without waiting for a quiet moment.
  func mustAsk(now: UInt64, atOnce: Bool) -> Bool {
    guard let deadline else { return false }
    return atOnce || now >= deadline
  }

  /// `verify` was sent under this id.
  mutating func asked(_ id: Int) { pendingID = id }

  /// Whether an answer is one to `verify`.
  func expects(_ id: Int) -> Bool { id == pendingID }

  /// The daemon answered.
  mutating func answered(_ answer: Answer) {
    pendingID = nil
    self.answer = answer
  }

  /// Compares, if the mirror is at the revision of the answer.
  /// - Throws: the fault when they differ.
  mutating func check(_ mirror: Mirror, now: UInt64) throws(FeedFault) {
    guard let answer, mirror.progress.isLive else { return }
    if mirror.progress.holds(at: answer.revision) {
      let digest = mirror.digest
      guard digest == answer.digest, mirror.counts == answer.counts else {
        throw .digest(revision: answer.revision, mine: digest, daemons: answer.digest)
      }
      verified = answer
      self.answer = nil
      changedAt = nil
    } else if mirror.progress.revision > answer.revision {
      self.answer = nil
      changedAt = now
    }
  }
}

extension Verification.Answer {
  /// Reads the result of `verify`.
  init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "verify")
    revision = try reader.revision("revision")
    counts = try reader.array("counts").map { $0.int ?? -1 }
    digest = try reader.string("digest")
  }
}
