import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem

/// Reads and verifies the elements of one feed of an image. Many elements are read by a thread of its own, while the caller
/// restores those before.
///
///     let reader = try ImageElementReader(database, feed: row)
///     defer { reader.stop() }
///     while let part = try reader.next() { part.forEach { … } }
///
/// Invariant: either the thread uses the database and the checksum or, after its end, the caller does. At most ``parts`` parts
/// are read and not restored.
final class ImageElementReader: @unchecked Sendable {
  /// Some elements.
  final class Part: @unchecked Sendable {
    private var bytes = ByteBuffer()
    private(set) var count = 0
    private static let headLength = 20
    private static let lookahead = 8
    /// The bytes from which on a part is full.
    private static let full = 256 << 10

    fileprivate var isFull: Bool { bytes.count >= Self.full }

    fileprivate func add(arrival: UInt64, changedAt: UInt64, _ text: UnsafeRawBufferPointer) {
      bytes.reserve(Self.headLength + text.count)
      let head = UnsafeMutableRawPointer(bytes.pointer) + bytes.count
      head.storeBytes(of: arrival, as: UInt64.self)
      head.storeBytes(of: changedAt, toByteOffset: 8, as: UInt64.self)
      head.storeBytes(of: UInt32(text.count), toByteOffset: 16, as: UInt32.self)
      bytes.didWrite(Self.headLength)
      bytes.append(text)
      count += 1
    }

    fileprivate func removeAll() {
      bytes.removeAll(keepingCapacity: true)
      count = 0
    }

    /// Calls `body` with each element, and with the text of one that comes some elements later; empty at the end.
    func forEach(
      _ body: (
        _ text: UnsafeRawBufferPointer, _ coming: UnsafeRawBufferPointer, _ arrival: UInt64, _ changedAt: UInt64
      ) throws(StorageError) -> Void
    ) throws(StorageError) {
      let all = bytes.bytes
      func text(at place: Int) -> UnsafeRawBufferPointer {
        if place >= all.count { return UnsafeRawBufferPointer(rebasing: all[all.count...]) }
        let start = place + Self.headLength
        let length = Int(all.loadUnaligned(fromByteOffset: place + 16, as: UInt32.self))
        return UnsafeRawBufferPointer(rebasing: all[start..<start + length])
      }
      var (place, ahead) = (0, 0)
      for _ in 0..<Self.lookahead where ahead < all.count { ahead += Self.headLength + text(at: ahead).count }
      while place < all.count {
        let (text, coming) = (text(at: place), text(at: ahead))
        try body(
          text, coming, all.loadUnaligned(fromByteOffset: place, as: UInt64.self),
          all.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self))
        place += Self.headLength + text.count
        if ahead < all.count { ahead += Self.headLength + coming.count }
      }
    }
  }

  private struct Exchange {
    var full: [Part] = []
    var empty: [Part] = []
    var failure: StorageError?
    var isOver = false
    var isStopped = false
  }

  /// Feeds with fewer elements are read by the calling thread.
  private static let many = 20_000
  /// A row of the table takes more bytes.
  private static let leastBytes = 8
  private static let parts = 4

  /// The number of elements, as their numbers and the size of the file say. It is verified by reading them.
  let count: Int
  private let elements: Statement
  private let feed: Int64
  private let path: String
  private var expected: Int64
  private var isAtEnd = false
  /// The checksum with the elements that were read. Used by the caller after `stop`.
  private(set) var checksum: FeedChecksum
  private let exchange = Guarded(Exchange())
  private var helper: (thread: Thread, filled: WakeUp, emptied: WakeUp)?
  /// The part that the caller restores.
  private var current = Part()

  init(_ database: Database, feed: Int64, _ checksum: FeedChecksum) throws(StorageError) {
    (self.feed, self.checksum) = (feed, checksum)
    path = database.path
    expected = Schema.base(of: feed)
    let last = try database.reading(
      "SELECT max(id) FROM element WHERE id BETWEEN ? AND ?", Schema.base(of: feed), Schema.last(of: feed))
    let named = try last.next(path) && last.type(of: 0) != .null ? Int(last.integer(0) - expected) + 1 : 0
    count = min(named, (FilePath.size(of: path) ?? 0) / Self.leastBytes)
    elements = try database.reading(
      "SELECT id, arrival, changed_at, text FROM element WHERE id BETWEEN ? AND ? ORDER BY id", Schema.base(of: feed),
      Schema.last(of: feed))
    if count >= Self.many { start() }
  }

  /// Starts the thread. Without one the caller reads.
  private func start() {
    guard let filled = try? WakeUp(), let emptied = try? WakeUp() else { return }
    exchange.withLock { exchange in exchange.empty = (0..<Self.parts).map { _ in Part() } }
    guard let thread = try? Thread("image", { self.run(filled, emptied) }) else { return }
    helper = (thread, filled, emptied)
  }

  private func run(_ filled: WakeUp, _ emptied: WakeUp) {
    while true {
      let (part, isStopped) = exchange.withLock { ($0.empty.popLast(), $0.isStopped) }
      if isStopped { return }
      guard let part else {
        emptied.wait()
        continue
      }
      var failure: StorageError?
      do throws(StorageError) { try fill(part) } catch { failure = error }
      let isOver = part.count == 0 || failure != nil
      exchange.withLock { exchange in
        if part.count > 0 { exchange.full.append(part) }
        (exchange.failure, exchange.isOver) = (failure, isOver)
      }
      filled.signal()
      if isOver { return }
    }
  }

  /// Returns the next elements, valid until the next call; nil at the end.
  func next() throws(StorageError) -> Part? {
    guard let helper else {
      try fill(current)
      return current.count > 0 ? current : nil
    }
    let former = current
    exchange.withLock { exchange in exchange.empty.append(former) }
    helper.emptied.signal()
    while true {
      let (part, isOver) = exchange.withLock { exchange in
        (exchange.full.isEmpty ? nil : exchange.full.removeFirst(), exchange.isOver)
      }
      if let part {
        current = part
        return part
      }
      if isOver { break }
      helper.filled.wait()
    }
    if let failure = exchange.withLock({ $0.failure }) { throw failure }
    return nil
  }

  /// Ends the thread. Must be called before the database is used otherwise.
  func stop() {
    guard let (thread, _, emptied) = helper else { return }
    exchange.withLock { $0.isStopped = true }
    emptied.signal()
    thread.join()
    helper = nil
  }

  /// Reads elements until the part is full. It stays empty at the end.
  private func fill(_ part: Part) throws(StorageError) {
    part.removeAll()
    while !part.isFull, !isAtEnd {
      guard try elements.next(path) else {
        isAtEnd = true
        return
      }
      guard elements.integer(0) == expected else {
        throw .missing("element \(expected & 0xffff_ffff)", ofFeed: feed, path)
      }
      let (arrival, changedAt, text) = (elements.unsigned(1), elements.unsigned(2), elements.textBytes(3))
      checksum.addElement(arrival: arrival, changedAt: changedAt, text)
      part.add(arrival: arrival, changedAt: changedAt, text)
      expected += 1
    }
  }
}

extension StorageError {
  /// The error of a part of an image that is not there.
  static func missing(_ what: String, ofFeed feed: Int64, _ path: String) -> StorageError {
    StorageError(.corrupt, path: path, reason: "\(what) of feed \(feed) of the image is missing or out of place")
  }
}
