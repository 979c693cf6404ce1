import Glibc

/// The time that this process has spent on a processor: what a measurement within one process goes by, since others that
/// share the machine do not count in it.
enum CPUClock {
  /// Nanoseconds of processor time so far.
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
