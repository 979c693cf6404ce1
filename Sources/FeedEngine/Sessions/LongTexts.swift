import FeedJSON
import FeedModel

/// The text of a long request, scanned in parts by several turns.
final class LongText {
  /// Not private, because a batch takes the scanner with the tokens of the text.
  var scanner: JSONScanner
  private(set) var isComplete = false

  init(maxDepth: Int) {
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// The memory of the tokens in bytes.
  var memory: Int { scanner.capacity &* QueryJob.tokenSize }

  /// Scans at most about `count` tokens of the text, which is the same in each call.
  func scan(_ text: UnsafeRawBufferPointer, tokens count: Int) throws(JSONError) {
    assert(!isComplete)
    isComplete = try scanner.scanPart(text, tokens: count) != nil
  }
}

/// The connections whose next request is so long that its text is scanned in parts, in the order of arrival.
///
/// Users share each turn equally, and a turn scans a part of one text of each user: the tokens take more memory than the text.
/// Invariant: a session is listed exactly if it has a long text.
struct LongTexts {
  /// The bytes of a text that is scanned in one turn.
  private static let shortText = 256 << 10
  /// The tokens that one turn scans. A token takes about 10 ns.
  private static let tokensPerTurn = 1 << 17

  private var listed: [Session] = []
  /// The users of whom a part was scanned in this turn.
  private var served: Set<UInt32> = []

  var isEmpty: Bool { listed.isEmpty }

  /// Whether a text of `bytes` bytes is scanned in parts.
  static func isLong(_ bytes: Int) -> Bool { bytes > shortText }

  mutating func beginTurn() { served.removeAll(keepingCapacity: true) }

  /// Returns the long text of a session, which is listed if it was not.
  mutating func text(of session: Session, maxDepth: Int) -> LongText {
    if let text = session.longText { return text }
    let text = LongText(maxDepth: maxDepth)
    session.longText = text
    listed.append(session)
    return text
  }

  /// The first session of each user that `isAble` to go on.
  func next(where isAble: (Session) -> Bool) -> [Session] {
    var users: Set<UInt32> = []
    return listed.filter { !users.contains($0.peer.uid) && isAble($0) && users.insert($0.peer.uid).inserted }
  }

  /// Returns the number of tokens of a session's text to scan now; nil if it is not its turn.
  mutating func takeTurn(_ session: Session, where isAble: (Session) -> Bool) -> Int? {
    guard !served.contains(session.peer.uid) else { return nil }
    let sessions = next(where: isAble)
    guard sessions.contains(where: { $0 === session }) else { return nil }
    served.insert(session.peer.uid)
    return Self.tokensPerTurn / sessions.count
  }

  /// Removes the text of a session, if it has one.
  mutating func remove(_ session: Session) {
    if session.longText == nil { return }
    session.longText = nil
    listed.removeAll { $0 === session }
  }

  /// Traps in a debug build unless the list equals the set of sessions with a long text. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      precondition(Set(listed.map(ObjectIdentifier.init)).count == listed.count, "a session is listed twice")
      precondition(listed.count == sessions.count { $0.longText != nil } && listed.allSatisfy { $0.longText != nil })
    #endif
  }
}

extension Engine {
  /// Begins the part of a turn that scans long texts: takes the input of their connections again.
  func resumeLongTexts() {
    if longTexts.isEmpty { return }
    longTexts.beginTurn()
    for session in longTexts.next(where: canScan) { resumeIfPossible(session) }
  }

  /// Whether a long text can be scanned on, or taken.
  var hasLongTextToScan: Bool { !longTexts.isEmpty && !longTexts.next(where: canScan).isEmpty }

  /// Whether the text of a session can be scanned on, or taken: as the next input, or as a request of a JSON-RPC batch.
  func canScan(_ session: Session) -> Bool {
    guard let text = session.longText, !session.isClosing, session.line.takesMore, session.line.work == nil,
      session.output.count <= limits.maxQueue
    else { return false }
    if session.line.batch != nil { return session.line.isEmpty }
    return !session.input.hasEnded && (!text.isComplete || session.line.isEmpty)
  }
}
