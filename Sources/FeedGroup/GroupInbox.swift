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

  init() throws(GroupError) { do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") } }

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

/// What the thread of a group's log hands to the engine's thread.
final class GroupNotices: Sendable {
  private struct State {
    var events: [(LogEvent, Upkeep.Purpose?)] = []
    var next = 0
    var lines: [(isWarning: Bool, text: String)] = []
    var status = GroupStatus()
    var isCaughtUp = false
    var announcement = OwnMessages.Announcement(number: 0)
    /// Nil if they did not change since they were taken.
    var duties: GroupMachine.Duties?
    var lastDuties: GroupMachine.Duties?
  }

  private let state = Guarded(State())
  private let wakeUp: WakeUp

  init() throws(GroupError) { do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") } }

  /// Readable while there are events.
  var descriptor: Int32 { wakeUp.descriptor }
  var status: GroupStatus { state.withLock { $0.status } }
  var isCaughtUp: Bool { state.withLock { $0.isCaughtUp } }
  var announcement: OwnMessages.Announcement { state.withLock { $0.announcement } }

  /// Removes and returns the duties of this member; nil if they did not change.
  func takeDuties() -> GroupMachine.Duties? {
    state.withLock { state in
      defer { state.duties = nil }
      return state.duties
    }
  }

  func post(_ machine: GroupMachine, status: GroupStatus?) {
    let events = machine.takeEvents()
    let lines = machine.takeLines()
    if events.isEmpty && lines.isEmpty && status == nil && machine.announcement == announcement { return }
    let added = events.map { event -> (LogEvent, Upkeep.Purpose?) in
      if case .mark(let mark) = event { (event, machine.takePurpose(mark)) } else { (event, nil) }
    }
    let (isCaughtUp, duties) = (machine.isCaughtUp, status == nil ? nil : machine.duties)
    let announcement = machine.announcement
    var isNews = false
    state.withLock { state in
      isNews = state.announcement != announcement
      state.announcement = announcement
      if let duties, duties != state.lastDuties {
        (state.duties, state.lastDuties) = (duties, duties)
        isNews = true
      }
      state.events.append(contentsOf: added)
      state.lines.append(contentsOf: lines)
      if let status {
        // An announced configuration waits no longer for a log that is away.
        isNews = isNews || (status.unreachable == nil) != (state.status.unreachable == nil)
        state.status = status
      }
      state.isCaughtUp = isCaughtUp
    }
    if !events.isEmpty || !lines.isEmpty || isNews { wakeUp.signal() }
  }

  /// Removes and returns the next event.
  func next() -> (LogEvent, Upkeep.Purpose?)? {
    state.withLock { state in
      guard state.next < state.events.count else {
        wakeUp.clear()
        return nil
      }
      let event = state.events[state.next]
      state.next += 1
      if state.next == state.events.count {
        state.events.removeAll(keepingCapacity: true)
        state.next = 0
        wakeUp.clear()
      }
      return event
    }
  }

  func takeLines() -> [(isWarning: Bool, text: String)] {
    state.withLock { state in
      if state.lines.isEmpty { return [] }
      defer { state.lines.removeAll() }
      return state.lines
    }
  }
}
