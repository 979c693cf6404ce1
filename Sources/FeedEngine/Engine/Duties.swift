import FeedJSON
import FeedModel

/// Timed work: quotas, evictions, access rules, incomplete frames, bookmarks, and watches that are not live.
extension Engine {
  /// The maximum number of elements that one eviction deletes: about two milliseconds. In a log of a former version, of each feed.
  private static let evictionLimit = 1000
  /// The steps of bins and of feeds above after which an eviction that is not stored ends: about two milliseconds. The next one goes on.
  private static let stepsOfEviction = 2_000_000
  /// The maximum number of feeds of one eviction. Each has a commit of its own.
  private static let evictedFeeds = 250
  /// The maximum number of elements that are gone whose memory one turn frees.
  private static let discardLimit = 2048

  /// Starts a turn.
  func begin(at now: Instant) {
    time.now = now
    time.moment = now
  }

  /// Does the timed work that is due, before the turn writes its output.
  func attend() {
    chargeSnapshots()
    closeOverQuota()
    if longWork.isExclusive { return }
    if !isDurable && !longWork.isUnderWay {
      evictExpired(after: ownWork.queue.lastEvicted, steps: Self.stepsOfEviction)
    }
    applyAccessRules()
    if time.nextSweep <= now {
      sweep()
    } else {
      if watches.hasDueBookmarks { sendBookmarks() }
    }
    trimHistories()
    advanceWatches()
    catalog.freeDiscarded(Self.discardLimit)
  }

  /// The time of the next turn if nothing arrives; nil if nothing is scheduled.
  var nextDeadline: Instant? {
    var next = sessions.isEmpty ? nil : time.nextSweep
    for moment in [nextEviction, watches.schedule.nextThrottle] {
      if let moment { next = min(next ?? moment, moment) }
    }
    return next
  }

  var hasWork: Bool {
    sessions.quotas.hasOverLimit || hasAnswersToContinue || watches.schedule.readyCount > 0 || sessions.hasResumable
      || catalog.hasDiscarded || catalog.isTrimming || hasLongTextToScan || watches.catchUps.hasWork
      || watches.hasDueBookmarks
  }

  /// Evicts expired elements, a bounded number in each turn. The feeds that are due share it.
  /// - Parameters:
  ///   - name: the last feed of the eviction before. The feeds behind it are next, so that those of one user do not keep others
  ///     waiting. By rules before 5, and in their logs nil, from all feeds.
  ///   - steps: the steps of bins and of feeds above after which it ends. Not for a stored one, which replay executes.
  func evictExpired(after name: String?, steps: Int = .max) {
    guard let expiry = catalog.nextExpiry, expiry <= time.moment else { return }
    let name = commit.rules < 5 ? nil : name
    let due = catalog.expired(at: time.moment, after: name ?? "", limit: name == nil ? .max : Self.evictedFeeds)
    let limit = name == nil ? Self.evictionLimit : Self.evictionLimit / max(1, due.count)
    ownWork.queue.lastEvicted = due.last?.name ?? ""
    var steps = steps
    for feed in due.sorted(by: { $0.name < $1.name }) {
      let each = catalog.stepsOfElement(of: feed)
      catalog.begin(at: time.moment)
      steps -= catalog.evictExpired(of: feed, limit: min(limit, max(1, steps / each))) * each
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
      if steps > 0 { continue }
      ownWork.queue.lastEvicted = feed.name
      break
    }
  }

  /// Whether an eviction of the log may take longer than a slice, because many feeds follow.
  func mayEvictionBeLong(after name: String?) -> Bool {
    catalog.expired(at: time.moment, after: name ?? "", limit: Self.evictedFeeds)
      .contains { catalog.stepsOfElement(of: $0) * Self.evictionLimit >= 5 * Self.stepsOfEviction }
  }

  /// Does the work that is checked only once a second.
  private func sweep() {
    time.nextSweep = now.adding(seconds: 1)
    resubmitRows()
    for session in sessions.all {
      closeIfStuck(session)
      discardIfUnread(session)
      session.last.feed.forgetIfGone()
    }
    sessions.nobody.last.feed.forgetIfGone()
    sendBookmarks()
    if !catalog.isTrimming { catalog.beginTrimming() }
  }

  /// Closes a connection whose incomplete frame makes no progress.
  private func closeIfStuck(_ session: Session) {
    guard let since = session.input.partialSince, !session.isClosing else { return }
    // While requests of the connection are not taken, the client cannot make progress.
    if !canWork(session) {
      session.input.partialSince = now
      return
    }
    guard now.since(since) >= UInt64(limits.frameTimeout) * 1_000_000_000 else { return }
    close(
      session, reason: "frameTimeout",
      message: "Half a frame made no progress for \(counted(limits.frameTimeout, "second")) (frameTimeout).",
      level: .warning)
  }

  /// Discards the output of a closing connection that was not read before the deadline.
  private func discardIfUnread(_ session: Session) {
    guard let deadline = session.phase.closeDeadline, deadline <= now, session.output.count > 0 else { return }
    status.report(
      .warning, "\(session.description) did not read its last \(counted(session.output.count, "byte"))",
      about: session.subject)
    session.output.removeAll()
    outbox.list(session)
  }

  /// Discards recorded changes beyond the limits, once a second and after many changes: those of some feeds in each turn.
  func trimHistories() {
    if !catalog.isTrimming && catalog.hasManyChanges { catalog.beginTrimming() }
    if !catalog.isTrimming { return }
    let oldest = now.nanoseconds.subtractingReportingOverflow(UInt64(limits.historySeconds) * 1_000_000_000)
    catalog.trimSome(before: Instant(nanoseconds: oldest.overflow ? 0 : oldest.partialValue))
  }

  func countRequest(of session: Session, _ count: Int) {
    status.counters.requests &+= UInt64(bitPattern: Int64(count))
    session.client.requests &+= UInt64(bitPattern: Int64(count))
  }
}

/// An entry of `Timers`, which stores its own position there.
protocol Timed: AnyObject {
  /// Written by `Timers` only.
  var timer: TimerSeat { get set }
}

struct TimerSeat {
  /// The second at which the entry expires; nil if it is in no list.
  fileprivate(set) var second: UInt64?
  fileprivate var place = 0
}

/// A timer wheel with a resolution of one second: one list of entries for each second.
///
/// Adding and removing are O(1). Times are rounded up to a whole second. An entry further ahead than the length of the
/// wheel stays in its list for several rotations. Invariant: each entry is in the list of its second, once.
struct Timers<Entry: Timed> {
  private static var size: Int { 64 }
  private static var second: UInt64 { 1_000_000_000 }

  private var slots: [[Entry]] = Array(repeating: [], count: Self.size)
  private(set) var count = 0
  /// The last second whose entries have all expired and were taken.
  private var reached: UInt64

  init(now: Instant) { reached = now.nanoseconds / Self.second }

  /// Adds an entry that is in no list. An entry with a past time expires in the next second.
  mutating func add(_ entry: Entry, at moment: Instant) {
    precondition(entry.timer.second == nil, "an entry has one timer")
    let (seconds, rest) = moment.nanoseconds.quotientAndRemainder(dividingBy: Self.second)
    let second = max(rest > 0 ? seconds + 1 : seconds, reached + 1)
    let slot = Self.slot(of: second)
    entry.timer.second = second
    entry.timer.place = slots[slot].count
    slots[slot].append(entry)
    count += 1
  }

  mutating func remove(_ entry: Entry) {
    guard let second = entry.timer.second else { return }
    remove(entry.timer.place, of: Self.slot(of: second))
  }

  /// Removes the entries that have expired by now, at most so many: the next call returns others. O(seconds passed + entries in
  /// their lists).
  mutating func takeExpired(now: Instant, atMost most: Int = .max) -> [Entry] {
    let second = now.nanoseconds / Self.second
    guard second > reached else { return [] }
    let passed = min(second - reached, UInt64(Self.size))
    var expired: [Entry] = []
    for back in 0..<passed {
      let slot = Self.slot(of: second - back)
      var place = 0
      while place < slots[slot].count {
        let entry = slots[slot][place]
        guard let due = entry.timer.second, due <= second else {
          place += 1
          continue
        }
        if expired.count == most { return expired }
        remove(place, of: slot)
        expired.append(entry)
      }
    }
    reached = second
    return expired
  }

  private static func slot(of second: UInt64) -> Int { Int(second % UInt64(size)) }

  /// Removes an entry from its list; the last one of the list takes its place.
  private mutating func remove(_ place: Int, of slot: Int) {
    slots[slot][place].timer.second = nil
    let last = slots[slot].removeLast()
    if place < slots[slot].count {
      last.timer.place = place
      slots[slot][place] = last
    }
    count -= 1
  }

  /// Traps in a debug build unless each entry is at its position. O(entries).
  func checkInvariants() {
    #if DEBUG
      for (slot, entries) in slots.enumerated() {
        for (place, entry) in entries.enumerated() {
          let second = entry.timer.second ?? 0
          let right = Self.slot(of: second) == slot && entry.timer.place == place
          assert(right, "an entry is in the wrong list")
          assert(second > reached, "an entry has expired unnoticed")
        }
      }
      assert(slots.reduce(0) { $0 + $1.count } == count)
    #endif
  }
}
