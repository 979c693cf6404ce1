import FeedJSON
import FeedModel

/// The text of a long request, scanned in parts by several turns.
final class LongText {
  /// Not private, because a batch takes the scanner with the tokens of the text.
  var scanner: JSONScanner
  private(set) var isComplete = false
  /// How far the request was checked by the access rules of a version, and whether no more is to be checked in parts.
  var check = RequestCheck()
  var isChecked = false
  var rules = 0

  init(maxDepth: Int) { scanner = JSONScanner(maxDepth: maxDepth) }

  /// The memory of the tokens in bytes.
  var memory: Int { scanner.capacity &* JSONScanner.tokenSize }

  /// Scans at most about `count` tokens of the text, which is the same in each call.
  func scan(_ text: UnsafeRawBufferPointer, tokens count: Int) throws(JSONError) {
    assert(!isComplete)
    isComplete = try scanner.scanPart(text, tokens: count) != nil
  }
}

/// The connections whose next request is so long that its text is scanned in parts, in the order of arrival.
///
/// Users share each turn equally, and a turn scans a part of one text of each user: the tokens take more memory than the text.
/// Invariant: a session is listed exactly if it has a long text, and only such a session has a turn.
struct LongTexts {
  /// The bytes of a text that is scanned in one turn.
  private static let shortText = 256 << 10
  /// The tokens that one turn scans. A token takes 10 to 40 ns, most of them for memory that was not used before.
  private static let tokensPerTurn = 1 << 16

  private var listed: [Session] = []
  /// The session of each user that has this turn.
  private var chosen: [UInt32: Session] = [:]
  /// The users of whom a part was scanned in this turn.
  private var served: Set<UInt32> = []

  var isEmpty: Bool { listed.isEmpty }

  static func isLong(_ bytes: Int) -> Bool { bytes > shortText }

  /// Returns the long text of a session, which is listed if it was not. O(1).
  mutating func text(of session: Session, maxDepth: Int) -> LongText {
    if let text = session.longText { return text }
    let text = LongText(maxDepth: maxDepth)
    session.longText = text
    listed.append(session)
    return text
  }

  /// Begins a turn. Returns the sessions that have it: the first one of each user that `isAble` to go on. O(sessions).
  mutating func beginTurn(where isAble: (Session) -> Bool) -> [Session] {
    served.removeAll(keepingCapacity: true)
    chosen.removeAll(keepingCapacity: true)
    for session in listed where chosen[session.peer.uid] == nil && isAble(session) {
      chosen[session.peer.uid] = session
    }
    return listed.filter { chosen[$0.peer.uid] === $0 }
  }

  /// Whether a session `isAble` to go on. O(sessions) if there is none, which is rare.
  func hasNext(where isAble: (Session) -> Bool) -> Bool { listed.contains(where: isAble) }

  /// Returns the number of tokens of a session's text to scan now; nil if it is not its turn. O(1).
  mutating func takeTurn(_ session: Session) -> Int? {
    let uid = session.peer.uid
    guard !served.contains(uid), chosen[uid].map({ $0 === session }) ?? true else { return nil }
    chosen[uid] = session
    served.insert(uid)
    return Self.tokensPerTurn / chosen.count
  }

  mutating func remove(_ session: Session) {
    if session.longText == nil { return }
    session.longText = nil
    listed.removeAll { $0 === session }
    if chosen[session.peer.uid] === session { chosen[session.peer.uid] = nil }
  }

  /// Traps in a debug build unless the list equals the set of sessions with a long text. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      precondition(Set(listed.map(ObjectIdentifier.init)).count == listed.count, "a session is listed twice")
      precondition(chosen.values.allSatisfy { $0.longText != nil }, "a session has a turn and no long text")
      precondition(listed.count == sessions.count { $0.longText != nil } && listed.allSatisfy { $0.longText != nil })
    #endif
  }
}

extension Engine {
  /// Begins the part of a turn that scans long texts: takes the input of their connections again.
  func resumeLongTexts() {
    if sessions.longTexts.isEmpty { return }
    for session in sessions.longTexts.beginTurn(where: canScan) { resumeIfPossible(session) }
  }

  /// Whether a long text can be scanned on, or taken.
  var hasLongTextToScan: Bool { !sessions.longTexts.isEmpty && sessions.longTexts.hasNext(where: canScan) }

  /// Whether the text of a session can be scanned on, or taken: as the next input, or as a request of a JSON-RPC batch.
  func canScan(_ session: Session) -> Bool {
    guard let text = session.longText, !session.isClosing, session.line.takesMore, session.line.work == nil,
      session.output.count <= limits.maxQueue
    else { return false }
    if session.line.array != nil { return session.line.isEmpty }
    return !session.input.hasEnded && (!text.isComplete || session.line.isEmpty)
  }
}
