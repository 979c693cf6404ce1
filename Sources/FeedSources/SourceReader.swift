import FeedSystem
import Synchronization

/// A thread that looks at one database when it is told to. A slow query holds up nobody else.
final class SourceReader: Sendable {
  private enum Task: Sendable {
    case none
    case look(SourceSpecification, generation: Int)
    case end
  }

  private let task = Mutex<Task>(.none)
  private let wakeUp: WakeUp
  private let mailbox: SourceMailbox

  init(_ mailbox: SourceMailbox) throws(SystemError) {
    wakeUp = try WakeUp()
    self.mailbox = mailbox
    try Thread("source") { self.run() }
  }

  /// Has the database looked at; the report goes to the mailbox.
  func look(_ specification: SourceSpecification, generation: Int) {
    task.withLock { $0 = .look(specification, generation: generation) }
    wakeUp.signal()
  }

  /// Ends the thread once it has done what it does.
  func end() {
    task.withLock { $0 = .end }
    wakeUp.signal()
  }

  private func run() {
    var connection = SourceConnection()
    while true {
      wakeUp.wait()
      let next = task.withLock { task in
        defer { task = .none }
        return task
      }
      switch next {
      case .none: continue
      case .end: return
      case .look(let specification, let generation):
        let start = MonotonicClock.now
        let outcome = connection.look(specification)
        mailbox.post(
          SourceReport(
            name: specification.name, generation: generation, outcome: outcome, duration: MonotonicClock.now - start))
      }
    }
  }
}
