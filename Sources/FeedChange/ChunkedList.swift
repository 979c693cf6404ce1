/// A list in chunks: an edit in the middle of a long list moves one chunk, not the whole tail.
///
/// A list of n elements has about n / `chunkCapacity` chunks. An edit finds its chunk by summing the chunk lengths,
/// which for a million rows are some thousand integers (about a microsecond), then moves at most one chunk. A batch of
/// edits traverses the chunks once.
public struct ChunkedList<Element> {
  /// No chunk is empty and none is longer than `chunkCapacity`.
  @usableFromInline var chunks: [[Element]] = []
  /// The lengths of the chunks, in one array so that finding a row touches little memory.
  @usableFromInline var counts: [Int] = []
  @usableFromInline var length = 0
  @usableFromInline let chunkCapacity: Int

  /// The number of elements.
  @inlinable public var count: Int { length }
  /// The number of chunks, for tests.
  package var chunkCount: Int { chunks.count }

  /// Creates an empty list.
  @inlinable public init() { self.init(chunkCapacity: 256) }

  /// Creates an empty list with chunks of at most `chunkCapacity` elements, at least 2. For tests with small chunks.
  @inlinable package init(chunkCapacity: Int) {
    precondition(chunkCapacity >= 2)
    self.chunkCapacity = chunkCapacity
  }

  /// Appends elements. Amortized O(1) each.
  @inlinable public mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements {
      if let last = counts.last, last < chunkCapacity {
        chunks[chunks.count - 1].append(element)
        counts[counts.count - 1] = last + 1
      } else {
        chunks.append([element])
        counts.append(1)
      }
      length += 1
    }
    checkInvariants()
  }

  /// The chunk that contains `row`, and the row of its first element.
  /// - Precondition: 0 ≤ row < count.
  @inlinable func chunk(of row: Int) -> (chunk: Int, start: Int) {
    var (chunk, start) = (0, 0)
    while start + counts[chunk] <= row {
      start += counts[chunk]
      chunk += 1
    }
    return (chunk, start)
  }
}

extension ChunkedList: Sendable where Element: Sendable {}

extension ChunkedList: RandomAccessCollection {
  @inlinable public var startIndex: Int { 0 }
  @inlinable public var endIndex: Int { count }

  /// The element at `row`. O(n / chunk capacity) with a small constant; use an iterator for many elements.
  @inlinable public subscript(row: Int) -> Element {
    precondition(row >= 0 && row < count, "row out of range")
    let (chunk, start) = chunk(of: row)
    return chunks[chunk][row - start]
  }

  /// Iterates over the elements in order, O(1) each.
  public struct Iterator: IteratorProtocol {
    @usableFromInline let chunks: [[Element]]
    @usableFromInline var chunk = 0
    @usableFromInline var place = 0

    @inlinable init(_ chunks: [[Element]]) { self.chunks = chunks }

    @inlinable public mutating func next() -> Element? {
      guard chunk < chunks.count else { return nil }
      let element = chunks[chunk][place]
      place += 1
      if place == chunks[chunk].count { (chunk, place) = (chunk + 1, 0) }
      return element
    }
  }

  @inlinable public func makeIterator() -> Iterator { Iterator(chunks) }
}

extension ChunkedList: Equatable where Element: Equatable {
  public static func == (left: ChunkedList, right: ChunkedList) -> Bool {
    left.count == right.count && left.elementsEqual(right)
  }
}

extension ChunkedList {
  /// Checks the chunks and their lengths, in debug builds. O(chunks).
  @inlinable @inline(__always)
  func checkInvariants() {
    #if CHECK_INVARIANTS
      precondition(chunks.count == counts.count)
      for (chunk, length) in zip(chunks, counts) {
        precondition(chunk.count == length && length > 0 && length <= chunkCapacity)
      }
      precondition(counts.reduce(0, +) == count)
    #endif
  }
}

/// Batches of edits. Precondition: the rows are in range and strictly ascending.
extension ChunkedList {
  /// Removes the elements at `rows`, in coordinates before the removal. O(chunks + chunk length × chunks touched).
  @inlinable package mutating func remove(_ rows: some Collection<Int>) {
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
      length -= here.count
      isThin = isThin || counts[chunk] * 4 < chunkCapacity
      (chunk, start) = (chunk + 1, end)
    }
    if isThin { mergeThinChunks() }
    checkInvariants()
  }

  /// Returns the elements at `rows`. O(chunks + rows).
  @inlinable package func elements(at rows: some Collection<Int>) -> [Element] {
    var (chunk, start) = (0, 0)
    var found: [Element] = []
    found.reserveCapacity(rows.count)
    for row in rows {
      while row >= start + counts[chunk] {
        start += counts[chunk]
        chunk += 1
      }
      found.append(chunks[chunk][row - start])
    }
    return found
  }

  /// Inserts `elements` at `rows`, in coordinates after the insertion. O(chunks + chunk length × chunks touched).
  @inlinable package mutating func insert(_ elements: some Collection<Element>, at rows: some Collection<Int>) {
    if chunks.isEmpty {
      append(contentsOf: elements)
      return
    }
    var (chunk, start) = (0, 0)
    var elements = elements[...]
    var rest = rows[...]
    while let first = rest.first {
      // `start` includes inserted elements, so it is a coordinate after the change, like `first`.
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
      length += here.count
      split(chunk)
    }
    checkInvariants()
  }

  /// Replaces the elements at `rows`. O(chunks + rows).
  @inlinable package mutating func replace(_ rows: some Collection<Int>, with elements: some Collection<Element>) {
    var (chunk, start) = (0, 0)
    for (row, element) in zip(rows, elements) {
      while row >= start + counts[chunk] {
        start += counts[chunk]
        chunk += 1
      }
      chunks[chunk][row - start] = element
    }
  }

  /// Splits a chunk that is too long into equal pieces.
  @inlinable mutating func split(_ chunk: Int) {
    let length = counts[chunk]
    guard length > chunkCapacity else { return }
    // Two thirds full, so that there is room for later insertions nearby.
    let target = Swift.max(1, chunkCapacity * 2 / 3)
    let whole = chunks[chunk]
    let pieces = (length + target - 1) / target
    let cuts = (0...pieces).map { length * $0 / pieces }
    let parts = zip(cuts, cuts.dropFirst()).map { Array(whole[$0..<$1]) }
    chunks.replaceSubrange(chunk...chunk, with: parts)
    counts.replaceSubrange(chunk...chunk, with: parts.map(\.count))
  }

  /// Removes empty chunks, and merges neighbours that fit in half a chunk.
  @inlinable mutating func mergeThinChunks() {
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
  /// Removes the elements at `rows` minus `offset`, ascending.
  @inlinable mutating func remove(_ rows: some Collection<Int>, offset: Int) {
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

  /// Inserts `elements` at `rows` minus `offset`, ascending.
  @inlinable mutating func insert(_ elements: some Collection<Element>, at rows: some Collection<Int>, offset: Int) {
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
