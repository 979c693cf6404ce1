extension JSONView {
  /// Whether two values are equal by RFC 9535, section 2.3.5.2.2: numbers by exact value, strings by code points, arrays
  /// by their elements in order, objects as maps, where the last member of a name counts.
  ///
  /// O(n log n) in the length of the texts; O(n) if they are the same bytes.
  public func equals(_ other: JSONView) -> Bool {
    // Not repeated for nested containers: that would cost a pass over the text for each level.
    if sameText(other) { return true }
    switch shallow(other) {
    case .equal: return true
    case .different: return false
    case .containers:
      var work = [(self, other)]
      while let (a, b) = work.popLast() {
        switch a.shallow(b) {
        case .equal: continue
        case .different: return false
        case .containers: guard a.pairChildren(b, &work) else { return false }
        }
      }
      return true
    }
  }

  private enum Shallow { case equal, different, containers }

  /// Compares as far as possible without looking into containers.
  private func shallow(_ other: JSONView) -> Shallow {
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

  private func stringEquals(_ other: JSONView) -> Bool {
    if hasEscapes == other.hasEscapes && sameText(other) { return true }
    return (hasEscapes || other.hasEscapes) && compareString(other) == 0
  }

  /// Adds the pairs that must be equal for two containers of one kind to be equal. Returns false if they cannot be.
  private func pairChildren(_ other: JSONView, _ work: inout [(JSONView, JSONView)]) -> Bool {
    if isKind(.array) {
      guard count == other.count else { return false }
      work.append(contentsOf: zip(elements, other.elements))
      return true
    }
    let (mine, theirs) = (sortedMembers(), other.sortedMembers())
    guard mine.count == theirs.count else { return false }
    for (a, b) in zip(mine, theirs) {
      guard a.key.stringEquals(b.key) else { return false }
      work.append((a.value, b.value))
    }
    return true
  }

  /// The last member of each name, sorted by name.
  private func sortedMembers() -> [Member] {
    var sorted = Array(members)
    sorted.sort { a, b in
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
