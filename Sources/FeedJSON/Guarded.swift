import Glibc
import Synchronization

#if THREAD_SANITIZER
  /// A value that a mutex guards. The thread sanitizer knows this mutex; it does not see those of `Synchronization`, whose
  /// library is not built with it.
  public struct Guarded<Value>: ~Copyable, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    public init(_ value: consuming sending Value) {
      pthread_mutex_init(mutex, nil)
      self.value.initialize(to: value)
    }

    deinit {
      pthread_mutex_destroy(mutex)
      value.deinitialize(count: 1)
      mutex.deallocate()
      value.deallocate()
    }

    /// Locks the mutex, calls `body` with the value, and unlocks.
    public borrowing func withLock<R, E>(_ body: (inout sending Value) throws(E) -> sending R) throws(E) -> sending R {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      nonisolated(unsafe) let value = value
      return try body(&value.pointee)
    }

    /// Calls `body` with the value if the mutex is free; returns nil otherwise.
    public borrowing func withLockIfAvailable<R, E>(
      _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R? {
      guard pthread_mutex_trylock(mutex) == 0 else { return nil }
      defer { pthread_mutex_unlock(mutex) }
      nonisolated(unsafe) let value = value
      return try body(&value.pointee)
    }
  }
#else
  /// A value that a mutex guards.
  public typealias Guarded = Mutex
#endif
