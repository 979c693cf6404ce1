import FeedClient

/// What is said about the connection and the section of a watch, each time once.
struct WatchRemarks {
  private let feed: String
  private let invocation: Invocation
  /// Why there are no updates, as it was found last; nil while there are.
  private(set) var complaint: String?
  /// Why the daemon refused the request of a key.
  var refusal: String?
  /// Whether it was remarked that the feed has not the section that is watched.
  private var hasRemarked = false

  init(_ feed: String, _ invocation: Invocation) { (self.feed, self.invocation) = (feed, invocation) }

  /// The watch has begun, so there are updates. Remarks that the feed has not the section that is watched.
  /// - Throws: a usage error if the section is ambiguous.
  mutating func started(_ start: WatchStart, _ section: SectionName?) throws(Failure) {
    complaint = nil
    guard let remark = try section?.check(start.sections), !hasRemarked else { return }
    hasRemarked = true
    invocation.console.say(remark)
  }

  /// Tells why there are no updates.
  ///
  /// - Parameter isShown: whether a display shows ``complaint``, so that nothing is printed.
  mutating func complain(_ reason: ClientError, isShown: Bool = false) {
    let sentence =
      switch reason {
      case .noDaemon: "waiting for a daemon at \(invocation.socketPath)"
      case .refused: "waiting for the feed \(feed)"
      default: "\(reason.clause); reconnecting"
      }
    if sentence != complaint, !isShown { invocation.console.say(sentence) }
    complaint = sentence
  }
}
