import FeedJSON
import FeedModel
import FeedSystem

/// Computes the digest of all feeds in an image, in parts, on the engine's thread.
///
/// Two members with the same digest have the same feeds, definitions, revisions, selections and rows, in the same order, with
/// the same times of change. Recent changes that watchers resume from are not part of it: hosts discard them at different times.
struct StateDigest: ~Copyable {
  /// Rows between two looks at the clock.
  private static let rowsPerStep = 256

  let mark: UInt64
  private let image: CatalogImage
  private var feed = 0
  private var section = 0
  private var checksums: (first: UInt32, second: UInt32) = (0, 0x9e37_79b9)
  private var bytes: UInt64 = 0

  init(_ image: CatalogImage, mark: UInt64) { (self.image, self.mark) = (image, mark) }

  /// Reads rows for about `nanoseconds`. Returns the digest when it is complete.
  mutating func step(for nanoseconds: UInt64) -> String? {
    let deadline = MonotonicClock.now &+ nanoseconds
    while feed < image.feeds.count {
      read(image.feeds[feed])
      if MonotonicClock.now >= deadline { return nil }
    }
    add(image.revision)
    return padded(checksums.first, to: 8, radix: 16) + padded(checksums.second, to: 8, radix: 16)
  }

  private mutating func read(_ feed: FeedImage) {
    if section == 0 { addHead(feed) }
    guard section < feed.sections.count else {
      section = 0
      self.feed += 1
      return
    }
    if section == 0 { section = 1 }
    let snapshot = feed.sections[section - 1]
    let count = snapshot.next(max: Self.rowsPerStep) { row in
      add(row.element.changedAt.nanoseconds)
      add(row.element.text)
    }
    if count > 0 { return }
    add(UInt64(section))
    if section == feed.sections.count {
      section = 0
      self.feed += 1
    } else {
      section += 1
    }
  }

  private mutating func addHead(_ feed: FeedImage) {
    add(feed.name)
    add(feed.definition)
    add(feed.revision)
    for bin in feed.bins {
      add(bin.revision)
      for path in bin.selection { add(UInt64(path.row)) }
    }
    for path in feed.selection {
      add(UInt64(path.section))
      add(UInt64(path.row))
    }
  }

  private mutating func add(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { add($0) } }

  private mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  private mutating func add(_ part: UnsafeRawBufferPointer) {
    bytes &+= UInt64(part.count)
    checksums.first = CRC32C.of(part, after: checksums.first)
    // Another polynomial would cost more; the count makes the two sums differ.
    checksums.second = withUnsafeBytes(of: bytes) { CRC32C.of($0, after: checksums.second ^ checksums.first) }
  }
}
