import Glibc

/// The seeds of the histories that are being played, one for each thread, for the case that the process crashes.
///
/// A failed assertion of the daemon ends the process. A signal handler then writes the seed to the standard error, before the
/// crash continues as usual. If the thread is the second stack of a sliced request, it writes the seeds of all threads.
enum SeedsInPlay {
  private struct Slot {
    var thread: pthread_t = 0
    var seed: UInt64 = 0
    var isUsed = false
  }

  private struct Table {
    var slots = UnsafeMutablePointer<Slot>.allocate(capacity: 64)
    var former = UnsafeMutablePointer<sigaction>.allocate(capacity: 64)
    var lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  }

  /// Read by the signal handler, without a lock. It is never deallocated.
  nonisolated(unsafe) private static let table = makeTable()

  /// Runs `body`, which plays the history of a seed on this thread.
  static func during<Result>(_ seed: UInt64, _ body: () -> Result) -> Result {
    let slot = enter(seed)
    defer { leave(slot) }
    return body()
  }

  private static func enter(_ seed: UInt64) -> Int? {
    pthread_mutex_lock(table.lock)
    defer { pthread_mutex_unlock(table.lock) }
    guard let free = (0..<64).first(where: { !table.slots[$0].isUsed }) else { return nil }
    table.slots[free] = Slot(thread: pthread_self(), seed: seed, isUsed: true)
    return free
  }

  private static func leave(_ slot: Int?) {
    guard let slot else { return }
    pthread_mutex_lock(table.lock)
    table.slots[slot].isUsed = false
    pthread_mutex_unlock(table.lock)
  }

  private static func makeTable() -> Table {
    let table = Table()
    table.slots.initialize(repeating: Slot(), count: 64)
    table.former.initialize(repeating: sigaction(), count: 64)
    pthread_mutex_init(table.lock, nil)
    for signal in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { SeedsInPlay.report($0) }
      action.sa_flags = SA_ONSTACK | Int32(bitPattern: UInt32(SA_NODEFER))
      sigaction(signal, &action, &table.former[Int(signal)])
    }
    return table
  }

  /// Calls only functions that a signal handler may call. A thread that plays no history works for one of them.
  private static func report(_ signal: Int32) {
    let isKnown = (0..<64).contains { table.slots[$0].isUsed && table.slots[$0].thread == pthread_self() }
    for index in 0..<64 where table.slots[index].isUsed && (!isKnown || table.slots[index].thread == pthread_self()) {
      write(isKnown ? "\nthe process crashes in the history of FEEDD_SEED=" : "\nperhaps FEEDD_SEED=")
      write(table.slots[index].seed)
      write("\n")
    }
    sigaction(signal, &table.former[Int(signal)], nil)
    // The instruction that failed is executed again, unless the signal was sent.
    if signal == SIGABRT || signal == SIGTRAP { raise(signal) }
  }

  private static func write(_ text: StaticString) { _ = Glibc.write(2, text.utf8Start, text.utf8CodeUnitCount) }

  private static func write(_ number: UInt64) {
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &digits) { space in
      var (rest, place) = (number, 24)
      repeat {
        place -= 1
        space[place] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      } while rest > 0
      _ = Glibc.write(2, space.baseAddress?.advanced(by: place), 24 - place)
    }
  }
}
