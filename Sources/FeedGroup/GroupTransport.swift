/// What a member sends.
protocol GroupTransport: AnyObject {
  /// Sends a message. Returns the reason why it was not sent; nil if it was, which does not mean that it arrives.
  func publish(_ subject: String, reply: String?, identity: String?, rollup: String?, _ bytes: [UInt8]) -> String?
  /// Receives what is sent to a subject, in place of the one of the call before. It is not below the inbox: the servers deliver
  /// only to the exact subject of a subscription.
  func follow(_ subject: String)
}

extension GroupTransport {
  /// Sends a request to JetStream.
  func request(_ subject: String, reply: String?, _ text: String) {
    _ = publish(subject, reply: reply, identity: nil, rollup: nil, Array(text.utf8))
  }
}

/// A message that the stream delivered or that answers this member.
struct GroupInput {
  let subject: String
  let reply: String?
  let bytes: UnsafeRawBufferPointer
  /// The headers `Status`, `Nats-Last-Consumer` and `Nats-Consumer-Stalled` of a message without bytes.
  var status: String?
  var lastConsumer: UInt64?
  var stalled: String?
  /// What keeps `bytes` alive.
  let owner: AnyObject
}

/// Lines for the daemon's log.
final class GroupReport {
  private var lines: [(isWarning: Bool, text: String)] = []

  func note(_ text: String, isWarning: Bool) { lines.append((isWarning, text)) }

  func take() -> [(isWarning: Bool, text: String)] {
    defer { lines.removeAll() }
    return lines
  }
}
