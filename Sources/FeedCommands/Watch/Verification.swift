import FeedClient
import FeedJSON

/// Compares a mirror with the daemon's digest at the same revision: a pure state machine.
///
/// An answer may arrive before the deltas that lead to its revision. It is then kept until the mirror has this
/// revision. If the mirror is already at a later revision, another digest is requested.
struct Verification: Equatable {
  /// The daemon's answer to `verify`.
  struct Answer: Equatable {
    var revision: UInt64
    var counts: [Int]
    var digest: String
  }

  /// Nanoseconds without changes before a digest is requested.
  static let quiet: UInt64 = 200_000_000

  private var pendingID: Int?
  private var answer: Answer?
  private var changedAt: UInt64?
  /// The last answer that matched.
  private(set) var verified: Answer?

  /// Records a change of the mirror.
  mutating func changed(now: UInt64) { changedAt = now }

  /// Records that the connection was lost, and the answer with it.
  mutating func lost() {
    pendingID = nil
    answer = nil
  }

  /// Whether all changes are verified.
  var isComplete: Bool { changedAt == nil }

  /// The time of the next request; nil if there is none.
  var deadline: UInt64? { pendingID == nil && answer == nil ? changedAt.map { $0 &+ Self.quiet } : nil }

  /// Whether to send a request now.
  /// - Parameter atOnce: whether to skip the wait for a time without changes.
  func mustAsk(now: UInt64, atOnce: Bool) -> Bool {
    guard let deadline else { return false }
    return atOnce || now >= deadline
  }

  /// Records the id of a `verify` request that was sent.
  mutating func asked(_ id: Int) { pendingID = id }

  /// Whether an id is that of the `verify` request.
  func expects(_ id: Int) -> Bool { id == pendingID }

  /// Records the answer of the daemon.
  mutating func answered(_ answer: Answer) {
    pendingID = nil
    self.answer = answer
  }

  /// Compares, if the mirror is at the revision of the answer.
  /// - Throws: the fault if the digests differ.
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
  /// Parses the result of `verify`.
  init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "verify")
    revision = try reader.revision("revision")
    counts = try reader.array("counts").map { $0.int ?? -1 }
    digest = try reader.string("digest")
  }
}
