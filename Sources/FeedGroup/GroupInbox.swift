import FeedJSON
import FeedModel
import FeedSystem

/// What the engine's thread and the threads of libnats hand to the thread of a group's log.
final class GroupInbox: Sendable {
  enum Item: Sendable {
    case nats(NatsEvent)
    case append(LogBatch)
    case digest(mark: UInt64, String)
    /// An image was written to a file.
    case image(WrittenImage)
    case imageFailed
    case announce([String: UInt32], number: Int)
    /// An image is to be published.
    case sharedImage
    /// Nothing more is read, because the daemon ends.
    case freeze
    case leave
    case rejoin
    case end
  }

  private let items = Guarded<[Item]>([])
  private let wakeUp: WakeUp

  init() throws(GroupError) {
    do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") }
  }

  func post(_ item: Item) {
    let isFirst = items.withLock { items in
      items.append(item)
      return items.count == 1
    }
    if isFirst { wakeUp.signal() }
  }

  /// Removes and returns all items, in order. Waits for one, at most for `nanoseconds`.
  func take(within nanoseconds: UInt64) -> [Item] {
    let items = takeAll()
    if !items.isEmpty || nanoseconds == 0 { return items }
    _ = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: .nanoseconds(Int64(clamping: nanoseconds)))
    return takeAll()
  }

  private func takeAll() -> [Item] {
    items.withLock { items in
      if items.isEmpty { return [] }
      wakeUp.clear()
      defer { items.removeAll(keepingCapacity: true) }
      return items
    }
  }
}

/// An image of the state in a file of this host, and the place in the stream that it continues from.
public struct WrittenImage: Sendable {
  public let path: String
  public let bytes: Int
  /// The last message that it covers, and the first one that is needed besides it.
  public let position: UInt64
  public let from: UInt64
  /// Whether it is published for all members.
  public let isShared: Bool
  /// The table of the members at that place.
  public let note: String

  public init(path: String, bytes: Int, position: UInt64, from: UInt64, isShared: Bool, note: String) {
    self.path = path
    self.bytes = bytes
    self.position = position
    self.from = from
    self.isShared = isShared
    self.note = note
  }
}
