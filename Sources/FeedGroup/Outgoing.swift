/// The messages of this member that it has not seen in the stream yet, in the order of their numbers.
///
/// Invariant: the numbers of the messages are consecutive and end before `nextNumber`.
struct Outgoing {
  struct Message {
    let number: UInt64
    let kind: GroupMessage.Kind
    /// Parts of the message as sent, without the deadline that is set when it is sent.
    let payload: [UInt8]
    let time: UInt64
    let isLast: Bool
    /// The number of the batch that ends with this message; nil for others.
    let batch: UInt64?
    /// The monotonic time at which the batch is refused; nil for others.
    let deadline: UInt64?
    /// What the server knows the message by. A retry after a lost acknowledgement has the same; after the message had no effect,
    /// it has another one.
    var identity: UInt64
    /// How often it had no effect; part of the message.
    var round: UInt32 = 0
    /// The monotonic time at which it was last sent; 0 if it was not.
    var sentAt: UInt64 = 0
    /// How often it was given to a connection.
    var sendings = 0
    /// The place where a server has stored it, and when it said so; nil if none did.
    var stored: (place: UInt64, at: UInt64)?
  }

  private(set) var messages: [Message] = []
  private(set) var nextNumber: UInt64 = 1
  private var identities: UInt64 = 0

  var isEmpty: Bool { messages.isEmpty }
  /// The monotonic time at which the oldest batch is refused that no server acknowledged. One that is stored is awaited.
  var deadline: UInt64? { messages.first { $0.deadline != nil && $0.stored == nil }?.deadline }

  mutating func add(
    _ kind: GroupMessage.Kind, _ payload: [UInt8], time: UInt64, isLast: Bool = true, batch: UInt64? = nil,
    deadline: UInt64? = nil
  ) {
    identities += 1
    messages.append(
      Message(
        number: nextNumber, kind: kind, payload: payload, time: time, isLast: isLast, batch: batch, deadline: deadline,
        identity: identities))
    nextNumber += 1
  }

  /// Adds a message that was never sent, with another number.
  mutating func add(again message: Message) {
    add(
      message.kind, message.payload, time: message.time, isLast: message.isLast, batch: message.batch,
      deadline: message.deadline)
  }

  /// The place of the message with a number; nil if there is none.
  private func place(of number: UInt64) -> Int? {
    guard let first = messages.first?.number, number >= first, number < nextNumber else { return nil }
    return Int(number - first)
  }

  /// The messages to send now: those that were not sent since `time`.
  func unsent(since time: UInt64) -> [Int] {
    messages.indices.filter { place in
      let message = messages[place]
      return message.stored == nil && (message.sentAt < time || message.sendings == 0)
    }
  }

  mutating func didSend(_ place: Int, at time: UInt64) {
    messages[place].sentAt = time
    messages[place].sendings += 1
  }

  mutating func didAcknowledge(_ identity: UInt64, storedAt sequence: UInt64, now: UInt64) {
    guard let place = messages.firstIndex(where: { $0.identity == identity }) else { return }
    messages[place].stored = (sequence, now)
  }

  func message(identity: UInt64) -> Message? { messages.first { $0.identity == identity } }

  /// Removes the messages up to a number, which had their effect. Returns the one with the number.
  mutating func resolve(through number: UInt64) -> Message? {
    guard let place = place(of: number) else { return nil }
    let message = messages[place]
    messages.removeSubrange(...place)
    return message
  }

  /// Lets the messages from a number on be sent again as new ones, because one of them had no effect. Returns false if they were
  /// renewed since it was sent: messages of a former round arrive late, and each of them would lead to another round.
  /// - Parameters:
  ///   - number: the first one that the stream has not.
  ///   - failed: the number of the one that had no effect, and its round.
  mutating func renew(from number: UInt64, failed: (number: UInt64, round: UInt32)) -> Bool {
    guard let first = place(of: number) ?? (messages.first.map { $0.number > number } == true ? 0 : nil) else {
      return false
    }
    if let place = place(of: failed.number), messages[place].round != failed.round { return false }
    for place in messages.indices.dropFirst(first) {
      identities += 1
      messages[place].round &+= 1
      messages[place].identity = identities
      messages[place].sentAt = 0
      messages[place].stored = nil
    }
    return true
  }

  /// Lets all messages be sent again at once, with the same identity: a new connection may have lost them.
  mutating func retryAll() { for place in messages.indices { messages[place].sentAt = 0 } }

  /// Removes all messages, and numbers from 1 on.
  mutating func removeAll() {
    messages.removeAll()
    nextNumber = 1
  }
}
