/// A moment on the clock that the daemon's loop hands in: nanoseconds since an arbitrary, fixed origin, never going back.
///
/// The model and the engine own no clock, so that a simulator can drive them.
@frozen public struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's origin.
  public var nanoseconds: UInt64

  @inlinable public init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  @inlinable public static func < (a: Instant, b: Instant) -> Bool {
    a.nanoseconds < b.nanoseconds
  }

  /// The moment `seconds` later; saturates instead of overflowing.
  @inlinable public func adding(seconds: Double) -> Instant {
    adding(nanoseconds: UInt64(clamping: Int64(min(max(seconds, 0) * 1e9, 9e18))))
  }

  /// The moment `nanoseconds` later; saturates instead of overflowing.
  @inlinable public func adding(nanoseconds more: UInt64) -> Instant {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
    return Instant(nanoseconds: overflow ? .max : sum)
  }

  /// Nanoseconds from `earlier` to this moment; 0 when `earlier` is not earlier.
  @inlinable public func since(_ earlier: Instant) -> UInt64 {
    nanoseconds > earlier.nanoseconds ? nanoseconds &- earlier.nanoseconds : 0
  }
}
