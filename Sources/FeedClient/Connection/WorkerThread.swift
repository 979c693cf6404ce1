import FeedJSON
import FeedSystem
import Glibc
import Synchronization

/// A thread of the client that starts when it is first needed, and the wake-up that it waits on.
final class WorkerThread: Sendable {
  private let name: String
  /// Nil if the system refused an event descriptor.
  private let wakeUp = try? WakeUp()
  private let isStarted = Guarded(false)

  init(_ name: String) { self.name = name }

  /// Starts the thread, unless it was started before, and wakes it.
  /// - Throws: if the thread cannot be started; the next call tries again.
  func wake(running body: @escaping @Sendable () -> Void) throws(ClientError) {
    let mustStart = isStarted.withLock { isStarted in
      defer { isStarted = true }
      return !isStarted
    }
    if mustStart {
      do throws(SystemError) {
        guard wakeUp != nil else { throw SystemError(code: EMFILE, operation: "create an event descriptor") }
        try Thread(name) { body() }
      } catch {
        isStarted.withLock { $0 = false }
        throw .system(error)
      }
    }
    wake()
  }

  /// Wakes the thread, if it was started.
  func wake() { wakeUp?.signal() }

  /// Waits on the thread itself until it is woken, a descriptor is ready, or the deadline has passed.
  func wait(for descriptor: Int32?, _ interest: Readiness = .readable, until deadline: UInt64? = nil)
    throws(ClientError)
  {
    guard let wakeUp else { return }
    var list = WaitList()
    list.add(wakeUp.descriptor, .readable)
    if let descriptor { list.add(descriptor, interest) }
    do throws(SystemError) {
      _ = try list.wait(until: deadline)
    } catch {
      throw .system(error)
    }
    wakeUp.clear()
  }
}
