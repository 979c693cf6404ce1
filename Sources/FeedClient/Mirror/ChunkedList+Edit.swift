/// Edits of many rows at once, as the lists of a change have them. All rows are in range and strictly ascending: the
/// caller has validated the change.
extension ChunkedList {
  /// Removes the elements at `rows`, which are coordinates before any of them is removed. O(chunks + chunk × touched).
  mutating func remove(_ rows: some Collection<Int>) {
    var (chunk, start) = (0, 0)
    var rest = rows[...]
    var isThin = false
    while let first = rest.first {
      while first >= start + counts[chunk] {
        start += counts[chunk]
        chunk += 1
      }
      let end = start + counts[chunk]
      let here = rest.prefix { $0 < end }
      rest = rest.dropFirst(here.count)
      chunks[chunk].remove(here, offset: start)
      counts[chunk] -= here.count
      count -= here.count
      isThin = isThin || counts[chunk] * 4 < chunkCapacity
      (chunk, start) = (chunk + 1, end)
    }
    if isThin { mergeThinChunks() }
    checkInvariants()
  }

  /// Inserts `elements` so that each then stands at its row of `rows`. O(chunks + chunk × touched).
  mutating func insert(_ elements: some Collection<Element>, at rows: some Collection<Int>) {
    if chunks.isEmpty {
      append(contentsOf: elements)
      return
    }
    var (chunk, start) = (0, 0)
    var elements = elements[...]
    var rest = rows[...]
    while let first = rest.first {
      // `start` counts what is inserted already, so it is a coordinate after the change, like `first`.
      while first > start + counts[chunk], chunk + 1 < chunks.count {
        start += counts[chunk]
        chunk += 1
      }
      var room = start + counts[chunk]
      let here = rest.prefix { row in
        guard row <= room else { return false }
        room += 1
        return true
      }
      rest = rest.dropFirst(here.count)
      chunks[chunk].insert(elements.prefix(here.count), at: here, offset: start)
      elements = elements.dropFirst(here.count)
      counts[chunk] += here.count
      count += here.count
      split(chunk)
    }
    checkInvariants()
  }

  /// Puts `elements` in the place of those at `rows`. O(chunks + touched).
  mutating func replace(_ rows: some Collection<Int>, with elements: some Collection<Element>) {
    var (chunk, start) = (0, 0)
    for (row, element) in zip(rows, elements) {
      while row >= start + counts[chunk] {
        start += counts[chunk]
        chunk += 1
      }
      chunks[chunk][row - start] = element
    }
  }

  /// Cuts a chunk that has grown too long into even pieces.
  private mutating func split(_ chunk: Int) {
    let length = counts[chunk]
    guard length > chunkCapacity else { return }
    // Two thirds full, so that the next insertions nearby find room.
    let target = Swift.max(1, chunkCapacity * 2 / 3)
    let whole = chunks[chunk]
    let pieces = (length + target - 1) / target
    let cuts = (0...pieces).map { length * $0 / pieces }
    let parts = zip(cuts, cuts.dropFirst()).map { Array(whole[$0..<$1]) }
    chunks.replaceSubrange(chunk...chunk, with: parts)
    counts.replaceSubrange(chunk...chunk, with: parts.map(\.count))
  }

  /// Drops empty chunks and joins neighbours that fit into half a chunk together.
  private mutating func mergeThinChunks() {
    var kept = 0
    for chunk in chunks.indices where counts[chunk] > 0 {
      if kept > 0, counts[kept - 1] + counts[chunk] <= chunkCapacity / 2 {
        chunks[kept - 1] += chunks[chunk]
        counts[kept - 1] += counts[chunk]
      } else {
        chunks.swapAt(kept, chunk)
        counts.swapAt(kept, chunk)
        kept += 1
      }
    }
    chunks.removeSubrange(kept...)
    counts.removeSubrange(kept...)
  }
}

extension Array {
  /// Removes the elements at `rows` less `offset`, ascending.
  fileprivate mutating func remove(_ rows: some Collection<Int>, offset: Int) {
    if rows.count == 1, let row = rows.first {
      remove(at: row - offset)
      return
    }
    var rest = rows[...]
    var kept = 0
    for place in indices {
      if let row = rest.first, row - offset == place {
        rest = rest.dropFirst()
      } else {
        swapAt(kept, place)
        kept += 1
      }
    }
    removeLast(count - kept)
  }

  /// Inserts `elements` so that they stand at `rows` less `offset`, ascending.
  fileprivate mutating func insert(_ elements: some Collection<Element>, at rows: some Collection<Int>, offset: Int) {
    if rows.count == 1, let row = rows.first, let element = elements.first {
      insert(element, at: row - offset)
      return
    }
    var merged: [Element] = []
    merged.reserveCapacity(count + rows.count)
    var old = 0
    for (row, element) in zip(rows, elements) {
      let before = row - offset - merged.count
      merged += self[old..<old + before]
      old += before
      merged.append(element)
    }
    merged += self[old...]
    self = merged
  }
}
