import Observation

extension Row {
  /// Decodes the row's element.
  /// - Throws: `DecodingError` if the element does not match the type.
  public func decode<Item: Decodable>(_ type: Item.Type) throws -> Item {
    try JSONViewDecoder.decode(type, from: element)
  }
}

extension Mirror {
  /// The row of a section; nil if there is none.
  public subscript(section: Int, row: Int) -> Row? {
    guard sections.indices.contains(section), row >= 0, row < sections[section].rows.count else { return nil }
    return sections[section].rows[row]
  }

  /// The rows of all sections in order.
  public var rows: some Sequence<Row> { sections.lazy.flatMap(\.rows) }
}

/// The updates of a feed whose elements have one type; see ``Client/watch(_:as:)``.
///
/// Reconnects and resumes like ``Feed``. A slow loop gets fewer, larger updates.
public struct ItemSequence<Item: Decodable>: AsyncSequence, Sendable {
  public typealias Element = ItemUpdate<Item>

  let feed: Feed

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: feed.makeAsyncIterator()) }

  public struct AsyncIterator: AsyncIteratorProtocol {
    var base: Feed.AsyncIterator

    /// Returns the next update with rows; nil if the task is cancelled.
    public mutating func next() async throws -> ItemUpdate<Item>? {
      while let update = try await base.next() {
        if let mirror = update.mirror { return ItemUpdate(cause: update.cause, mirror: mirror) }
      }
      return nil
    }
  }
}

/// An event of a feed and the rows after it.
public struct ItemUpdate<Item: Decodable>: Sendable {
  public let cause: FeedUpdate.Cause
  public let mirror: Mirror

  /// The rows of all sections in order.
  public var rows: some Sequence<Row> { mirror.rows }

  /// The animation hint of the change; nil if there is none.
  public var animation: String? {
    guard case .delta(let delta) = cause else { return nil }
    return delta.animation
  }

  /// All elements in the order of the rows.
  public func items() throws -> [Item] {
    try mirror.sections.flatMap { section in try section.rows.map { try $0.decode(Item.self) } }
  }

  public func items(ofSection section: Int) throws -> [Item] {
    guard mirror.sections.indices.contains(section) else { return [] }
    return try mirror.sections[section].rows.map { try $0.decode(Item.self) }
  }

  /// The element of a row; nil if there is none, or if it does not match the type.
  public subscript(section: Int, row: Int) -> Item? { mirror[section, row].flatMap { try? $0.decode(Item.self) } }
}

/// A mirror of a feed that views can observe.
///
///     let inbox = ObservedMirror(Feed("inbox"))
///     Task { try await inbox.run() }
///     let item = try inbox[0, 3]?.decode(Item.self)
@MainActor @Observable
public final class ObservedMirror {
  /// The rows; nil before the first snapshot is complete.
  public private(set) var mirror: Mirror?
  /// The reason why the rows may be outdated; nil while the watch is running.
  public private(set) var interruption: ClientError?
  @ObservationIgnored private let feed: Feed

  /// Creates a mirror without rows; ``run(_:)`` fills it.
  public init(_ feed: Feed) { self.feed = feed }

  /// Follows the feed until the task is cancelled.
  public func run(_ note: (FeedUpdate) -> Void = { _ in }) async throws {
    for try await update in feed {
      if case .interrupted(let reason) = update.cause { interruption = reason } else { interruption = nil }
      if update.mirror != nil { mirror = update.mirror }
      note(update)
    }
  }

  /// The row of a section; nil if there is none.
  public subscript(section: Int, row: Int) -> Row? { mirror?[section, row] }
}

/// A registry of functions that draw rows, by the type of the row.
///
/// A function draws an element into a target, such as a cell of a list.
///
///     var drawers = Drawers<Cell>()
///     drawers.register("alarm", as: Item.self) { item, cell, animation in
///       cell.show(item.text, animated: animation != nil)
///     }
///     for row in update.rows { try drawers.draw(row, into: Cell(), animation: update.animation) }
public struct Drawers<Target> {
  private typealias Draw = (Row, Target, String?) throws -> Void
  /// By the bytes of the type: `String` takes "é" in one and in two code points for the same.
  private var byType: [[UInt8]: Draw] = [:]
  private var fallback: Draw?

  public init() {}

  /// Registers the function for a type of rows; nil registers it for rows with any other type or without a type.
  /// - Parameter draw: called with the element, the target, and the animation hint of the change.
  public mutating func register<Item: Decodable>(
    _ rowType: String?, as type: Item.Type, draw: @escaping (Item, Target, _ animation: String?) throws -> Void
  ) {
    let entry: Draw = { row, target, animation in try draw(try row.decode(type), target, animation) }
    if let rowType { byType[Array(rowType.utf8)] = entry } else { fallback = entry }
  }

  /// Draws a row with the function for its type.
  /// - Returns: false if no function is registered for it.
  @discardableResult
  public func draw(_ row: Row, into target: Target, animation: String? = nil) throws -> Bool {
    guard let draw = row.type.flatMap({ byType[Array($0.utf8)] }) ?? fallback else { return false }
    try draw(row, target, animation)
    return true
  }
}
