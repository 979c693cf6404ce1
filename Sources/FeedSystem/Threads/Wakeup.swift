import CLinux
import Glibc

/// A descriptor by which one thread wakes another (eventfd). Any thread may use it.
public struct Wakeup: ~Copyable, Sendable {
  private let handle: Descriptor

  public init() throws(SystemError) {
    let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard number >= 0 else { throw .last("make an event descriptor") }
    handle = Descriptor(owning: number)
  }

  /// Readable from ``signal()`` until ``take()``.
  public var descriptor: Int32 { handle.rawValue }

  /// Wakes whoever waits, or whoever will.
  public func signal() {
    var one: UInt64 = 1
    _ = retryingInterrupts { Glibc.write(handle.rawValue, &one, MemoryLayout<UInt64>.size) }
  }

  /// Takes all signals that came.
  public func take() {
    var count: UInt64 = 0
    _ = retryingInterrupts { Glibc.read(handle.rawValue, &count, MemoryLayout<UInt64>.size) }
  }

  /// Waits for a signal and takes all that came.
  public func wait() {
    _ = try? Readiness.readable.wait(on: handle.rawValue)
    take()
  }
}
