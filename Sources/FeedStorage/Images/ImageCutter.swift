import FeedJSON
import FeedModel

/// Cuts an image into the parts that are stored, on the engine's thread, while the feeds change.
///
/// Invariant: the parts of a feed are in order, and each of its elements gets one number, counted from 0.
struct ImageCutter: ~Copyable {
  /// The maximum bytes of changes in one row, so that a row fits in a page.
  private static let bytesOfHistoryRow = Schema.pageSize - 64
  /// The number of rows in one row of the table `section_rows`.
  private static let rowsPerChunk = 1024
  /// The maximum number of rows that are read at once.
  private static let rowsPerStep = 64
  private static let none = UInt32.max

  private enum Stage {
    case feed
    case section(Int)
    /// The index in `FeedImage.remembering`, and the last revision that was read of it.
    case history(Int, after: UInt64)
  }

  private let image: CatalogImage
  private var feedIndex = 0
  private var stage = Stage.feed
  /// The numbers of the current feed's elements, by owner; `none` for elements that were not reached yet.
  private var numbers: [UInt32] = []
  /// The number of elements that have a number.
  private var elements: UInt32 = 0
  private var chunk = RowChunk()

  init(_ image: CatalogImage) { self.image = image }

  /// Returns the next part, about 64 KiB. The last part has `isLast` set.
  mutating func next() -> ImagePart {
    assert(feedIndex < image.feeds.count || image.feeds.isEmpty, "nothing follows the last part")
    let part = ImagePart()
    while feedIndex < image.feeds.count && !part.isFull { read(image.feeds[feedIndex], into: part) }
    part.isLast = feedIndex == image.feeds.count
    checkInvariants()
    return part
  }

  private mutating func read(_ feed: FeedImage, into part: ImagePart) {
    switch stage {
    case .feed:
      numbers.removeAll(keepingCapacity: true)
      elements = 0
      part.append(Self.head(of: feed))
      stage = .section(0)
    case .section(let index) where index < feed.sections.count:
      if !readRows(of: feed.sections[index], index, into: part) { stage = .section(index + 1) }
    case .section:
      stage = .history(0, after: 0)
    case .history(let index, let last) where index < feed.remembering.count:
      let bin = feed.remembering[index]
      let revision = image.revision
      let newest = part.append(bin: bin ?? -1) { out in
        feed.packChanges(of: bin, after: last, upTo: revision, most: Self.bytesOfHistoryRow, into: &out)
      }
      stage = newest.map { .history(index, after: $0) } ?? .history(index + 1, after: 0)
    case .history:
      part.appendFeedEnd(historyBases: historyBases(of: feed))
      feedIndex += 1
      stage = .feed
    }
  }

  /// Reads more rows of a section, and their elements that were not read yet. Returns false at the end of the section.
  private mutating func readRows(of section: SectionSnapshot, _ index: Int, into part: ImagePart) -> Bool {
    // Nothing is read after an element that fills the part: the next ones may be thousands of times as long.
    let count = section.next(max: Self.rowsPerStep, bytes: max(1, ImagePart.size - part.byteCount)) { row in
      chunk.append(number(of: row.element, in: part))
    }
    if chunk.count >= Self.rowsPerChunk || count == 0 { chunk.flush(section: index, into: part) }
    if count == 0 { chunk = RowChunk() }
    return count > 0
  }

  /// Returns the number of an element. Adds the element to the part when it is reached for the first time.
  private mutating func number(of element: ElementText, in part: ImagePart) -> UInt32 {
    let owner = Int(element.owner)
    if owner < numbers.count {
      if numbers[owner] != Self.none { return numbers[owner] }
    } else {
      numbers += repeatElement(Self.none, count: max(owner + 1 - numbers.count, numbers.count, 64))
    }
    part.append(element: element)
    numbers[owner] = elements
    elements += 1
    return elements - 1
  }

  private static func head(of feed: FeedImage) -> ImagePart.FeedHead {
    ImagePart.FeedHead(
      name: feed.name, definition: feed.definition, given: feed.given.isEmpty ? feed.definition : feed.given,
      revision: feed.revision, bins: json(feed.bins.map(text(of:))),
      selection: json(feed.selection.map { "[\($0.section),\($0.row)]" }))
  }

  private static func text(of bin: StoredBin) -> String {
    if bin.selection.isEmpty { return "\(bin.revision)" }
    return json(["\(bin.revision)"] + bin.selection.map { "\($0.row)" })
  }

  /// The base revisions of the histories that were read; nil if the feed has none.
  private func historyBases(of feed: FeedImage) -> String? {
    let remembering = feed.remembering
    if remembering.isEmpty { return nil }
    return Self.json(remembering.map { bin in "[\(bin ?? -1),\(feed.historyBase(of: bin) ?? image.revision)]" })
  }

  private static func json(_ values: [String]) -> String { "[" + values.joined(separator: ",") + "]" }

  /// The numbers of elements in consecutive rows, as the beginning of a JSON array.
  private struct RowChunk: ~Copyable {
    private var text = ByteBuffer()
    private(set) var count = 0
    private var first = 0

    mutating func append(_ number: UInt32) {
      text.append(count == 0 ? UInt8(ascii: "[") : UInt8(ascii: ","))
      text.append(integer: number)
      count += 1
    }

    mutating func flush(section: Int, into part: ImagePart) {
      guard count > 0 else { return }
      text.append(UInt8(ascii: "]"))
      part.append(section: section, first: first, numbers: text.bytes)
      first += count
      count = 0
      text.removeAll(keepingCapacity: true)
    }
  }

  /// Checks counts only, in O(1): checking every number would be too slow for debug builds.
  private func checkInvariants() { assert(feedIndex <= image.feeds.count && Int(elements) <= numbers.count) }
}

/// The image that is being written: its unread rest, and the parts on their way to the thread that writes them.
///
/// Invariant: at most two parts are in flight.
struct ImageInFlight: ~Copyable {
  private static let partsInFlight = 2

  /// The number of the current or last image, counted from 1. Notices about other images are ignored.
  private(set) var number: UInt64 = 0
  /// The head of that image; zeros before the first.
  private(set) var head = ImageHead(id: 1, revision: 0, at: 0, journal: 0, limits: 0)
  private var cutter: ImageCutter?
  /// The number of parts that may be sent.
  private var partsLeft = 0

  /// Whether parts of the image have not been read yet.
  var isUnread: Bool { cutter != nil }
  /// Whether a part may be sent, if one is left.
  var maySend: Bool { partsLeft > 0 }

  /// Begins an image, in place of another one.
  /// - Parameter batch: the last batch that it covers.
  mutating func begin(_ content: CatalogImage, covering batch: UInt64) {
    number += 1
    head.revision = content.revision
    head.at = content.at.nanoseconds
    head.journal = Int64(clamping: batch)
    cutter = ImageCutter(content)
    partsLeft = Self.partsInFlight
  }

  /// Returns the next part, which is then in flight; nil if there is none, or if enough parts are in flight.
  mutating func next() -> ImagePart? {
    guard maySend, let part = cutter?.next() else { return nil }
    partsLeft -= 1
    if part.isLast { cutter = nil }
    return part
  }

  mutating func didWritePart() {
    partsLeft += 1
    assert(partsLeft <= Self.partsInFlight, "more parts were written than sent")
  }

  /// Forgets the unread rest. Parts in flight may still be reported.
  mutating func discard() { cutter = nil }
}
