import FeedModel
import FeedSystem
import Glibc

/// Waits for events. While a client asks again right after each answer, it looks for some microseconds before it sleeps: to be
/// woken takes longer than most requests.
///
/// It stops looking when nothing came in time, and when other programs want the processor. So an idle daemon uses no time, and
/// a busy machine loses little.
struct EagerWait: ~Copyable {
  /// Nanoseconds for which it looks: longer than a client needs to be woken and to ask again.
  private static let longest: UInt64 = 60_000
  /// The calls of the system for which it looks at most, also if the clock stands still.
  private static let mostLooks = 1000
  /// The waits in a row that must end soon before it looks, and the most that are counted.
  private static let enough = 4
  private static let most = 16
  /// What a look in vain, and one during which another program took the processor, cost of them.
  private static let (vain, taken) = (6, 64)
  /// The looks after which it is known whether other programs took the processor.
  private static let looksBetweenChecks = 64

  /// Whether a processor is left for the client.
  private let isAllowed = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1
  /// The waits that ended soon, less those that did not.
  private var credit = 0
  private var looks = 0
  private var switches = 0

  /// Waits like ``EventPoll/wait(milliseconds:)``.
  /// - Parameter mayLook: whether the events before were requests: their clients may ask again.
  mutating func wait(_ poll: borrowing EventPoll, milliseconds: Int32, mayLook: Bool) throws(SystemError) -> Int {
    guard mayLook, isAllowed, milliseconds != 0 else { return try poll.wait(milliseconds: milliseconds) }
    let start = MonotonicClock.now
    if credit >= Self.enough {
      for _ in 0..<Self.mostLooks where MonotonicClock.now &- start < Self.longest {
        let count = try poll.wait(milliseconds: 0)
        if count > 0 {
          didLook()
          return count
        }
      }
      credit -= Self.vain
    }
    let count = try poll.wait(milliseconds: milliseconds)
    let isSoon = count > 0 && MonotonicClock.now &- start < 2 * Self.longest
    credit = isSoon ? min(credit + 1, Self.most) : 0
    return count
  }

  private mutating func didLook() {
    credit = min(credit + 1, Self.most)
    looks += 1
    if looks < Self.looksBetweenChecks { return }
    looks = 0
    let before = switches
    switches = Thread.involuntarySwitches
    if switches - before > Self.looksBetweenChecks / 8 { credit = -Self.taken }
  }
}

/// Returns memory to the system that the daemon no longer needs.
///
/// Elements and snapshots are small blocks. When they are freed, malloc keeps their memory for others, and gives back only
/// what is at the end of its heap. So after much was freed, and is not needed again for some seconds, malloc is told to return
/// all free pages. That takes about 0.1 ms for each MiB, on a thread of its own: others wait only if they need the same heap.
struct FreedMemory {
  /// The fewest bytes that are returned.
  static let leastBytes = 32 << 20
  /// Nanoseconds for which bytes must not be needed again.
  static let patience: UInt64 = 5_000_000_000

  /// The most bytes that were needed since memory was returned, until the present period.
  private var most = 0
  /// The most bytes that were needed in the present period, and those that are needed now.
  private var recent = 0
  private var needed = 0
  private var periodEnd: Instant
  private var thread: Thread?

  init(now: Instant) { periodEnd = now }

  /// The end of the period if memory may have to be returned then or later; nil otherwise.
  var deadline: Instant? { max(most, recent) - needed >= Self.leastBytes ? periodEnd : nil }

  /// Returns what was not needed for a period. Called in each cycle.
  /// - Parameter needed: the bytes that are stored and held now.
  mutating func attend(_ needed: Int, now: Instant) {
    guard isDue(needed, now: now) else { return }
    thread?.join()
    thread = try? Thread("feedd-memory") { ProcessIdentity.returnFreePages() }
  }

  /// Whether free memory must be returned now.
  mutating func isDue(_ bytes: Int, now: Instant) -> Bool {
    needed = bytes
    recent = max(recent, bytes)
    guard now >= periodEnd else { return false }
    periodEnd = now.adding(nanoseconds: Self.patience)
    let isDue = most - recent >= Self.leastBytes
    most = isDue ? recent : max(most, recent)
    recent = bytes
    return isDue
  }
}
