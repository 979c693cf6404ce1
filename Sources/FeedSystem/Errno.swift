import Glibc

/// The calling thread's `errno`; its own function so that no other call comes between the failure and the reading.
@inline(__always)
func currentErrno() -> Int32 { errno }

/// Repeats a system call while a signal interrupts it, and returns its last result.
@inline(__always)
func retryingInterrupts<Result: FixedWidthInteger & SignedInteger>(_ call: () -> Result) -> Result {
  while true {
    let result = call()
    if result != -1 || errno != EINTR { return result }
  }
}
