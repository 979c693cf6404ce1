extension JSONView {
  /// Whether two values are equal by RFC 9535, section 2.3.5.2.2: numbers by exact value, strings by code points, arrays
  /// by their elements in order, objects as maps, where the last member of a name counts.
  ///
  /// O(n log n) in the length of the texts; O(n) if they are the same bytes.
  ///
  /// - Parameter pause: called now and then by a long comparison.
  public func equals(_ other: JSONView, pause: () -> Void = {}) -> Bool {
    // Not repeated for nested containers: that would cost a pass over the text for each level.
    if sameText(other) { return true }
    switch shallow(other) {
    case .equal: return true
    case .different: return false
    case .containers: break
    }
    guard var pairs = ChildPairs(self, other, pause) else { return false }
    var outer: [ChildPairs] = []
    while true {
      pause()
      guard let (a, b) = pairs.next() else {
        guard let last = outer.popLast() else { return true }
        pairs = last
        continue
      }
      switch a.shallow(b) {
      case .equal: continue
      case .different: return false
      case .containers:
        guard let inner = ChildPairs(a, b, pause) else { return false }
        outer.append(pairs)
        pairs = inner
      }
    }
  }

  fileprivate enum Shallow { case equal, different, containers }

  /// Compares as far as possible without looking into containers.
  fileprivate func shallow(_ other: JSONView) -> Shallow {
    guard kind == other.kind else { return .different }
    switch kind {
    case .null, .false, .true: return .equal
    case .number: return JSONNumber.compare(text, other.text) == 0 ? .equal : .different
    case .string: return stringEquals(other) ? .equal : .different
    case .array, .object: return .containers
    }
  }

  private func sameText(_ other: JSONView) -> Bool {
    token.pointee.length == other.token.pointee.length && Words.equal(start, other.start, text.count)
  }

  fileprivate func stringEquals(_ other: JSONView) -> Bool {
    if hasEscapes == other.hasEscapes && sameText(other) { return true }
    return (hasEscapes || other.hasEscapes) && compareString(other) == 0
  }

  /// The last member of each name, sorted by name.
  fileprivate func sortedMembers(_ pause: () -> Void) -> [Member] {
    var sorted = Array(members)
    sorted.sort { a, b in
      pause()
      let order = a.key.compareString(b.key)
      return order != 0 ? order < 0 : a.value.byteOffset > b.value.byteOffset
    }
    var kept: [Member] = []
    kept.reserveCapacity(sorted.count)
    for member in sorted {
      if let last = kept.last, last.key.stringEquals(member.key) { continue }
      kept.append(member)
    }
    return kept
  }
}

/// The pairs of children that must be equal for two containers to be equal, one after another.
private enum ChildPairs: IteratorProtocol {
  case elements(JSONView.Elements, JSONView.Elements)
  case members([JSONView.Member], [JSONView.Member], next: Int)

  /// The pairs of two containers of one kind; nil if these cannot be equal.
  init?(_ left: JSONView, _ right: JSONView, _ pause: () -> Void) {
    if left.isKind(.array) {
      guard left.count == right.count else { return nil }
      self = .elements(left.elements, right.elements)
      return
    }
    let (mine, theirs) = (left.sortedMembers(pause), right.sortedMembers(pause))
    guard mine.count == theirs.count else { return nil }
    self = .members(mine, theirs, next: 0)
  }

  /// Returns the values of the next pair, or two different names.
  mutating func next() -> (JSONView, JSONView)? {
    switch self {
    case .elements(var left, var right):
      guard let a = left.next(), let b = right.next() else { return nil }
      self = .elements(left, right)
      return (a, b)
    case .members(let left, let right, let place):
      guard place < left.count else { return nil }
      self = .members(left, right, next: place + 1)
      guard left[place].key.stringEquals(right[place].key) else { return (left[place].key, right[place].key) }
      return (left[place].value, right[place].value)
    }
  }
}
