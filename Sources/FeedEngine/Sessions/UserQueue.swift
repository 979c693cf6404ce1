/// A queue whose users take turns: an element waits for those that its own user added before, and for one of each other user
/// between two of them.
///
///     var queue = UserQueue<Watch>()
///     watch.place = queue.append(watch, of: watch.session.peer.uid)
///     while let watch = queue.takeFirst() { advance(watch) }
///
/// Invariant: each user of `turns` has a line, and is listed once; no other user has one. `count` is the number of elements in
/// all lines.
struct UserQueue<Element: AnyObject> {
  /// The elements of one user, in the order in which they were added.
  private struct Line {
    /// nil for an element that was removed out of order.
    var elements: [Element?] = []
    /// The place of `elements[0]`. Places only increase, so they stay valid while the queue advances.
    var firstPlace = 0
    /// The index of the first element that may be present.
    var head = 0
    var count = 0

    mutating func append(_ element: Element) -> Int {
      count += 1
      elements.append(element)
      return firstPlace + elements.count - 1
    }

    mutating func remove(at place: Int) {
      precondition(elements[place - firstPlace] != nil, "an element is removed once")
      elements[place - firstPlace] = nil
      count -= 1
      trim()
    }

    mutating func takeFirst() -> Element? {
      while head < elements.count {
        head += 1
        guard let element = elements[head - 1] else { continue }
        elements[head - 1] = nil
        count -= 1
        trim()
        return element
      }
      return nil
    }

    /// Frees the memory of what was removed from the front.
    private mutating func trim() {
      if count == 0 {
        firstPlace += elements.count
        elements.removeAll(keepingCapacity: elements.capacity <= 4096)
        head = 0
      } else if head > 64 && head * 2 > elements.count {
        firstPlace += head
        elements.removeFirst(head)
        head = 0
      }
    }
  }

  private var lines: [UInt32: Line] = [:]
  /// The users in the order of their turns. The line of a user may be empty: it is kept until the turn of the user, so that a
  /// user with one element allocates nothing each time.
  private var turns: [UInt32] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Adds an element behind all others of its user. Returns its place, by which it can be removed. Amortized O(1).
  mutating func append(_ element: Element, of uid: UInt32) -> Int {
    count += 1
    if lines[uid] == nil { turns.append(uid) }
    return lines[uid, default: Line()].append(element)
  }

  /// Removes the element at a place. Amortized O(1).
  mutating func remove(at place: Int, of uid: UInt32) {
    count -= 1
    lines[uid]?.remove(at: place)
  }

  /// Removes and returns the first element of the user whose turn it is; nil if the queue is empty. Amortized O(users).
  mutating func takeFirst() -> Element? {
    while !turns.isEmpty {
      let uid = turns.removeFirst()
      if let element = lines[uid]?.takeFirst() {
        count -= 1
        turns.append(uid)
        return element
      }
      lines[uid] = nil
    }
    return nil
  }

  /// Whether an element satisfies a condition. O(elements).
  func contains(where isMatch: (Element) -> Bool) -> Bool {
    lines.values.contains { $0.elements.contains { $0.map(isMatch) ?? false } }
  }

  /// Traps in a debug build unless `isAt` holds for each element, its user and its place. O(elements).
  func checkInvariants(_ isAt: (Element, UInt32, Int) -> Bool) {
    #if DEBUG
      assert(Set(turns) == Set(lines.keys) && turns.count == lines.count, "a user has no turn, or two")
      assert(lines.values.reduce(0) { $0 + $1.count } == count)
      for (uid, line) in lines {
        assert(line.elements.count { $0 != nil } == line.count)
        for (index, element) in line.elements.enumerated() {
          guard let element else { continue }
          assert(index >= line.head && isAt(element, uid, line.firstPlace + index), "an element is misplaced")
        }
      }
    #endif
  }
}
