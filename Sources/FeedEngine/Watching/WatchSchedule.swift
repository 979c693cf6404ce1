import FeedModel

/// The watches that are not live, each in one list according to what it waits for.
///
/// A turn visits only the ready watches and those whose throttle has expired, so a watch that cannot advance costs
/// nothing. Adding and removing a watch is O(1), or O(log n) for throttled watches.
///
/// Invariant: a watch is in the list that its seat names, at its place, and in no other.
struct WatchSchedule {
  /// Ready watches, each user's in the order in which they became ready.
  private var ready = UserQueue<Watch>()
  /// A binary heap by `nextDelta`.
  private var throttled: [Watch] = []
  /// Watches whose connection is full, by the number of the connection.
  private var blocked: [[Watch]] = []
  private(set) var blockedCount = 0

  var readyCount: Int { ready.count }
  var throttledCount: Int { throttled.count }

  /// The time when the next throttle expires; nil if no watch is throttled. O(1).
  var nextThrottle: Instant? { throttled.first?.nextDelta }

  /// Adds a watch that is not live to the list of what it waits for: its throttle, its connection, or nothing.
  mutating func add(_ watch: Watch, isConnectionFull: Bool, now: Instant) {
    precondition(watch.seat == .standing && !watch.isLive, "a watch waits in one list")
    if case .behind = watch.progress, now < watch.nextDelta {
      watch.seat = .throttled
      watch.place = throttled.count
      throttled.append(watch)
      siftUp(watch.place)
    } else if isConnectionFull {
      let number = watch.session.id.rawValue
      while blocked.count <= number { blocked.append([]) }
      blocked[number].add(watch, as: .blocked)
      blockedCount += 1
    } else {
      watch.seat = .ready
      watch.place = ready.append(watch, of: watch.session.peer.uid)
    }
  }

  mutating func remove(_ watch: Watch) {
    switch watch.seat {
    case .ready: ready.remove(at: watch.place, of: watch.session.peer.uid)
    case .throttled: removeThrottled(watch.place)
    case .blocked:
      blocked[watch.session.id.rawValue].take(watch)
      blockedCount -= 1
    case .inStep, .solo, .awaiting, .standing, .ended:
      preconditionFailure("the watch is in no list of the schedule")
    }
    watch.seat = .standing
  }

  /// Removes and returns the watch that has been ready for the longest time, of the user whose turn it is; nil if there is none.
  mutating func takeReady() -> Watch? {
    let watch = ready.takeFirst()
    watch?.seat = .standing
    return watch
  }

  /// Moves the watches whose throttle has expired to the ready queue. O(log n) each.
  mutating func releaseThrottled(now: Instant) {
    while let watch = throttled.first, watch.nextDelta <= now {
      remove(watch)
      add(watch, isConnectionFull: false, now: now)
    }
  }

  /// Moves the watches that waited for room on a connection to the ready queue. O(its watches).
  mutating func release(_ connection: ConnectionID, now: Instant) {
    guard blockedCount > 0, connection.rawValue < blocked.count else { return }
    while let watch = blocked[connection.rawValue].last {
      remove(watch)
      add(watch, isConnectionFull: false, now: now)
    }
  }

  /// Makes the next delta of a watch ignore its throttle.
  mutating func hurry(_ watch: Watch, now: Instant) {
    let wasWaiting = watch.seat == .throttled
    if wasWaiting { remove(watch) }
    watch.nextDelta = Instant(nanoseconds: 0)
    if wasWaiting { add(watch, isConnectionFull: false, now: now) }
  }

  private mutating func removeThrottled(_ place: Int) {
    let last = throttled.removeLast()
    guard place < throttled.count else { return }
    throttled[place] = last
    last.place = place
    siftUp(place)
    siftDown(last.place)
  }

  private mutating func siftUp(_ start: Int) {
    var place = start
    while place > 0 {
      let parent = (place - 1) / 2
      if throttled[parent].nextDelta <= throttled[place].nextDelta { return }
      exchange(place, parent)
      place = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
    var place = start
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < throttled.count && throttled[child].nextDelta < throttled[least].nextDelta {
        least = child
      }
      if least == place { return }
      exchange(place, least)
      place = least
    }
  }

  private mutating func exchange(_ a: Int, _ b: Int) {
    throttled.swapAt(a, b)
    throttled[a].place = a
    throttled[b].place = b
  }

  /// Traps in a debug build unless each watch is at its position. O(watches).
  func checkInvariants() {
    #if DEBUG
      ready.checkInvariants { watch, uid, place in
        watch.seat == .ready && watch.place == place && watch.session.peer.uid == uid
      }
      for (place, watch) in throttled.enumerated() {
        assert(watch.seat == .throttled && watch.place == place, "a throttled watch is misplaced")
        assert(place == 0 || throttled[(place - 1) / 2].nextDelta <= watch.nextDelta, "the throttles are no heap")
      }
      for (number, watches) in blocked.enumerated() {
        watches.checkInvariants(.blocked)
        assert(watches.allSatisfy { $0.session.id.rawValue == number }, "a blocked watch is in another list")
      }
      assert(blocked.reduce(0) { $0 + $1.count } == blockedCount)
    #endif
  }
}
