/// What a member sends.
protocol GroupTransport: AnyObject {
  /// The maximum bytes of a message with its headers that the servers take; 0 if that is not known.
  var maxPayload: Int { get }
  /// Sends a message. Returns the reason why it was not sent; nil if it was, which does not mean that it arrives.
  func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String?
  /// Receives what is sent to a subject, in place of the one of the call before. It is not below the inbox: the servers deliver
  /// only to the exact subject of a subscription.
  func follow(_ subject: String)
}

extension GroupTransport {
  /// The bytes of `wanted` that fit in a message beside `overhead` bytes and its headers.
  func room(for wanted: Int, beside overhead: Int = 0) -> Int {
    let headers = 256
    return maxPayload == 0 ? wanted : min(wanted, max(maxPayload - headers - overhead, 1024))
  }

  /// Sends a request to JetStream.
  func request(_ subject: String, reply: String?, _ text: String) {
    _ = publish(subject, reply: reply, identity: nil, Array(text.utf8))
  }
}

/// The connection of a member. One that never was, or that a server ended for good, is replaced by a new one.
///
/// Used by one thread at a time: at the start by the engine's thread, later by that of the log.
final class NatsTransport: GroupTransport, @unchecked Sendable {
  private let settings: NatsSettings
  private let name: String
  private let inboxSubject: String
  private let inbox: GroupInbox
  private var connection: NatsConnection?
  private var isOver = false

  init(_ settings: NatsSettings, name: String, inboxSubject: String, _ inbox: GroupInbox) {
    (self.settings, self.name, self.inboxSubject, self.inbox) = (settings, name, inboxSubject, inbox)
  }

  var isConnected: Bool { connection?.isConnected ?? false }
  var url: String { connection?.url ?? "" }
  var maxPayload: Int { connection?.maxPayload ?? 0 }
  /// Whether libnats does not try to connect.
  var needsConnection: Bool { connection == nil || isOver }

  /// Connects anew.
  func connect() throws(GroupError) {
    connection?.close()
    connection = nil
    isOver = false
    let inbox = inbox
    connection = try NatsConnection(settings, name: name, inbox: "\(inboxSubject).>") { inbox.post(.nats($0)) }
  }

  /// Records that libnats gave the connection up.
  func didClose() { isOver = true }

  func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String? {
    guard let connection, !isOver else { return "not connected" }
    return bytes.withUnsafeBytes { connection.publish(subject, reply: reply, identity: identity, $0) }
  }

  func follow(_ subject: String) { _ = connection?.follow(subject) }

  func close() {
    connection?.close()
    connection = nil
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
