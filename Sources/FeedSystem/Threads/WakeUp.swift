import CLinux
import Glibc

/// A descriptor by which any thread wakes another one (eventfd).
///
/// The sleeping thread either polls ``descriptor`` and calls ``clear()``, or calls ``wait()``. Signals are not counted:
/// several that arrive before the thread wakes up are one. A signal sent before the wait begins is not lost.
public final class WakeUp: Sendable {
  private let handle: Descriptor

  public init() throws(SystemError) {
    let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard number >= 0 else { throw .last("create an event descriptor") }
    handle = Descriptor(owning: number)
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
