import FeedModel
import FeedSystem

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

  init(now: Instant) {
    periodEnd = now
  }

  /// The end of the period if memory may have to be returned then or later; nil otherwise.
  var deadline: Instant? { max(most, recent) - needed >= Self.leastBytes ? periodEnd : nil }

  /// Returns what was not needed for a period. Called in each cycle.
  ///
  /// - Parameter needed: the bytes that are stored and held now.
  mutating func attend(_ needed: Int, now: Instant) {
    guard isDue(needed, now: now) else { return }
    thread?.join()
    thread = try? Thread("feedd-memory") { FreePages.returnAll() }
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
