import FeedJSON

/// The consumer that delivers the messages of the stream to this member, and the consumers before it.
///
/// Invariant: the messages of one consumer are accepted in order, each once.
struct StreamConsumer {
  /// What was delivered.
  enum Delivery {
    case nothing
    case heartbeat
    /// Messages are missing: another consumer is needed.
    case gap
    case message(JetStream.Place)
  }

  private let settings: GroupSettings
  private let inbox: String
  private let transport: any GroupTransport
  /// Each consumer has a number, which its subject contains.
  private(set) var generation: UInt64 = 0
  private var name = ""
  /// The messages that the consumer has delivered.
  private var delivered: UInt64 = 0
  /// An answer to the flow control of the consumer that waits for room.
  private var pendingFlow: String?

  init(_ settings: GroupSettings, inbox: String, _ transport: any GroupTransport) {
    (self.settings, self.inbox, self.transport) = (settings, inbox, transport)
  }

  /// The subject that the consumer delivers to.
  var subject: String { "\(inbox)-log.\(generation)" }
  /// Whether something is to be done soon.
  var isWaiting: Bool { pendingFlow != nil }

  /// Asks for another consumer.
  mutating func create(from next: UInt64) {
    if !name.isEmpty { transport.request(JetStream.deleteConsumer(settings.stream, name), reply: nil, "") }
    (name, delivered, pendingFlow) = ("", 0, nil)
    generation += 1
    transport.follow(subject)
    transport.request(
      JetStream.createConsumer(settings.stream), reply: "\(inbox).consumer.\(generation)",
      JetStream.consumer(settings.stream, deliver: subject, from: next))
  }

  mutating func didCreate(_ answer: JSONObject?) { name = answer?.string("name") ?? "" }

  /// Handles what was delivered.
  /// - Parameter isBusy: whether more is read than is executed.
  mutating func accept(_ input: GroupInput, isBusy: Bool) -> Delivery {
    if input.status == "100" {
      if let reply = input.reply ?? input.stalled {
        if isBusy { pendingFlow = reply } else { transport.request(reply, reply: nil, "") }
      }
      // A heartbeat that knows of more messages than arrived.
      if let last = input.lastConsumer, last > delivered, input.reply == nil { return .gap }
      return .heartbeat
    }
    guard let place = JetStream.Place(input.reply) else { return .nothing }
    guard place.consumer == delivered &+ 1 else { return place.consumer > delivered ? .gap : .nothing }
    delivered = place.consumer
    return .message(place)
  }

  /// Lets the consumer go on when there is room again.
  mutating func attend(isBusy: Bool) {
    guard let reply = pendingFlow, !isBusy else { return }
    pendingFlow = nil
    transport.request(reply, reply: nil, "")
  }
}
