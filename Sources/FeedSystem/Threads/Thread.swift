import CLinux
import Glibc
import Synchronization

/// A thread that runs one function to its end.
///
/// All signals are blocked on it, so that they reach the thread that handles them. Call ``join()`` to wait for the end. A
/// thread whose handle is discarded runs on without anybody waiting for it.
public final class Thread: Sendable {
  private final class Start {
    let name: String
    let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  private let number: pthread_t
  private let isJoined = Atomic<Bool>(false)

  /// Starts a thread that calls `body` and ends when it returns.
  /// - Parameter name: shown by `top -H` and debuggers; truncated to 15 bytes.
  @discardableResult
  public init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    // A new thread inherits the mask of its creator, so no signal can arrive before the mask is set.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

    var number = pthread_t()
    let start = Unmanaged.passRetained(Start(name, body))
    let code = pthread_create(
      &number, nil,
      { context in
        guard let context else { return nil }
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        clinux_name_thread(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      throw SystemError(code: code, operation: "start a thread")
    }
    self.number = number
  }

  deinit {
    if !isJoined.load(ordering: .relaxed) { pthread_detach(number) }
  }

  /// Waits for the thread to end. A second call returns at once.
  public func join() {
    assert(pthread_equal(number, pthread_self()) == 0, "a thread cannot wait for its own end")
    if isJoined.exchange(true, ordering: .relaxed) { return }
    pthread_join(number, nil)
  }
}

/// A descriptor by which any thread wakes another one (eventfd).
///
/// The sleeping thread either polls ``descriptor`` and calls ``clear()``, or calls ``wait()``. Signals are not counted:
/// several that arrive before the thread wakes up are one. A signal sent before the wait begins is not lost.
public final class WakeUp: Sendable {
  private let handle: Descriptor

  public init() throws(SystemError) {
    handle = try Descriptor("create an event descriptor") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }
  }

  /// The descriptor to poll for reading. It is readable from ``signal()`` until ``clear()``.
  public var descriptor: Int32 { handle.rawValue }

  /// Wakes the waiting thread, or the next one to wait.
  public func signal() {
    var one: UInt64 = 1
    // A counter at its maximum (EAGAIN) is readable already.
    _ = retryingInterrupts { Glibc.write(handle.rawValue, &one, MemoryLayout<UInt64>.size) }
  }

  /// Discards all signals sent so far. Never blocks.
  public func clear() {
    var count: UInt64 = 0
    _ = retryingInterrupts { Glibc.read(handle.rawValue, &count, MemoryLayout<UInt64>.size) }
  }

  /// Blocks until there is a signal, then discards all signals sent so far.
  public func wait() {
    _ = try? Readiness.readable.wait(on: handle.rawValue)
    clear()
  }
}
