/// A list of rows in chunks: edits in the middle of a long list move one chunk's rows, not the whole tail.
///
/// A list of n elements has about n / `chunkCapacity` chunks. An edit finds its chunk by adding up their counts, which
/// for a million rows is a walk over some thousands of integers, about a microsecond; then it moves at most a chunk.
/// Edits of many rows at once walk the chunks once.
public struct ChunkedList<Element> {
  /// No chunk is empty and none is longer than `chunkCapacity`.
  var chunks: [[Element]] = []
  /// The lengths of the chunks, beside one another so that the walk to a row touches little memory.
  var counts: [Int] = []
  /// How many elements there are. O(1).
  public internal(set) var count = 0
  let chunkCapacity: Int

  /// An empty list.
  public init() { self.init(chunkCapacity: 256) }

  /// An empty list with chunks of at most `chunkCapacity` elements, at least 2; small ones are for tests.
  init(chunkCapacity: Int) {
    precondition(chunkCapacity >= 2)
    self.chunkCapacity = chunkCapacity
  }

  /// Adds elements at the end. Amortised O(1) each.
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements {
      if let last = counts.last, last < chunkCapacity {
        chunks[chunks.count - 1].append(element)
        counts[counts.count - 1] = last + 1
      } else {
        chunks.append([element])
        counts.append(1)
      }
      count += 1
    }
    checkInvariants()
  }

  /// The chunk that holds `row`, and the row of that chunk's first element. Precondition: 0 ≤ row < count.
  func chunk(of row: Int) -> (chunk: Int, start: Int) {
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
  public var startIndex: Int { 0 }
  public var endIndex: Int { count }

  /// The element at `row`. O(n / chunk capacity) with a small constant; iterate for many.
  public subscript(row: Int) -> Element {
    precondition(row >= 0 && row < count, "row out of range")
    let (chunk, start) = chunk(of: row)
    return chunks[chunk][row - start]
  }

  /// Goes through the elements in order, O(1) each.
  public struct Iterator: IteratorProtocol {
    private let chunks: [[Element]]
    private var chunk = 0
    private var place = 0

    init(_ chunks: [[Element]]) { self.chunks = chunks }

    public mutating func next() -> Element? {
      guard chunk < chunks.count else { return nil }
      let element = chunks[chunk][place]
      place += 1
      if place == chunks[chunk].count { (chunk, place) = (chunk + 1, 0) }
      return element
    }
  }

  public func makeIterator() -> Iterator { Iterator(chunks) }
}

extension ChunkedList: Equatable where Element: Equatable {
  public static func == (left: ChunkedList, right: ChunkedList) -> Bool {
    left.count == right.count && left.elementsEqual(right)
  }
}

extension ChunkedList {
  /// Stops the program when the structure is not what the edits must keep; debug builds only. O(chunks).
  @inline(__always)
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
