/// A point in time: nanoseconds since an arbitrary, fixed origin.
///
/// The model and the engine read no clock. The caller passes the current time, so a simulator can drive them.
@frozen public struct Instant: Hashable, Comparable, Sendable {
  public var nanoseconds: UInt64

  @inlinable public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  @inlinable public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The instant `seconds` later. Negative values count as 0; the result saturates.
  @inlinable public func adding(seconds: Double) -> Instant {
    assert(!seconds.isNaN, "the time is not a number")
    return adding(nanoseconds: UInt64(clamping: Int64(min(max(seconds, 0) * 1e9, 9e18))))
  }

  /// The instant `nanoseconds` later. The result saturates.
  @inlinable public func adding(nanoseconds more: UInt64) -> Instant {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
    return Instant(nanoseconds: overflow ? .max : sum)
  }

  /// The nanoseconds from `earlier` to this instant; 0 if `earlier` is later.
  @inlinable public func since(_ earlier: Instant) -> UInt64 {
    nanoseconds > earlier.nanoseconds ? nanoseconds &- earlier.nanoseconds : 0
  }
}
