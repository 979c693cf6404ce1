import FeedClient
import FeedJSON
import FeedSystem

/// The lines of an export, which can be read several times; see ``ExportedFeed`` for the format.
///
/// Each reading validates the whole file: every line is JSON that fits a frame, and all feeds and elements that the headings
/// announce are there.
struct ExportLines: ~Copyable {
  enum Line {
    case feed(Heading)
    /// An element of the last feed, and its place in the file.
    case element(JSONView, line: Int, column: Int)
  }

  /// The line before the elements of a feed.
  struct Heading {
    let feed: ExportedFeed
    /// The number of elements; nil for a feed that has none of its own.
    let count: Int?
    let line: Int
  }

  private let input: RepeatableInput
  private let hello: ServerHello

  /// - Parameter hello: the daemon's limits for frames.
  init(_ input: consuming RepeatableInput, _ hello: ServerHello) {
    self.input = input
    self.hello = hello
  }

  /// Calls `take` with each line.
  /// - Throws: a usage error for an incomplete or malformed file, and what `take` throws.
  func read(_ take: (Line) throws(Failure) -> Void) throws(Failure) {
    // The frame has more members, and arrays and objects around the element.
    var reader = ElementReader(
      limit: max(hello.maxFrame - 256, 1), maxDepth: hello.maxDepth - PushTarget.longestEnvelopeDepth,
      opensArrays: false)
    var validator = ExportValidator()
    var offset = 0
    while true {
      let count: Int
      do throws(SystemError) {
        count = try input.read(into: reader.room(), at: offset)
      } catch {
        throw .system(error)
      }
      offset += count
      count == 0 ? reader.finish() : reader.didFill(count)
      while let item = reader.next() { try take(validator.line(item)) }
      if count == 0 { break }
    }
    try validator.end()
  }
}

/// Counts the feeds and elements of an export that are still expected.
private struct ExportValidator {
  private var heading: ExportLines.Heading?
  /// The number of elements of the last feed that are still expected.
  private var missingElements = 0
  /// The number of feeds that are still expected. After the last one, another export may follow.
  private var missingFeeds = 0

  /// Returns the line of an item.
  mutating func line(_ item: ElementReader.Item) throws(Failure) -> ExportLines.Line {
    switch item {
    case .flaw(let flaw): throw .usage("import: \(flaw)")
    case .element(let view, let line, let column) where missingElements > 0:
      missingElements -= 1
      return .element(view, line: line, column: column)
    case .element(let view, let line, _): return .feed(try begin(view, line))
    }
  }

  private mutating func begin(_ view: JSONView, _ line: Int) throws(Failure) -> ExportLines.Heading {
    let feed = ExportedFeed(view)
    guard !feed.name.isEmpty, !feed.kind.isEmpty else {
      throw .usage("import: line \(line): expected the definition of a feed, as feedclient export writes it")
    }
    let count = try number("count", of: view, line)
    let following = try number("following", of: view, line) ?? 0
    guard missingFeeds == 0 || following == missingFeeds - 1 else {
      throw .usage(
        "import: line \(line): \"following\" is \(following), not \(missingFeeds - 1): a part of the file is missing"
      )
    }
    missingElements = count ?? 0
    missingFeeds = following
    let heading = ExportLines.Heading(feed: feed, count: count, line: line)
    self.heading = heading
    return heading
  }

  /// A number of a heading; nil if it is absent.
  private func number(_ member: StaticString, of view: JSONView, _ line: Int) throws(Failure) -> Int? {
    guard let value = view.member(member) else { return nil }
    guard let number = value.int, number >= 0 else {
      throw .usage("import: line \(line): \"\(member)\" must be a number from 0")
    }
    return number
  }

  /// Throws unless the file has everything that its headings announce.
  func end() throws(Failure) {
    guard let heading else {
      throw .usage("import: the file is empty; feedclient export writes a line for each feed")
    }
    let place = "'\(heading.feed.name)', defined in line \(heading.line)"
    if missingElements > 0 {
      throw .usage("import: the file ends early: \(place), lacks \(counted(missingElements, "element"))")
    }
    if missingFeeds > 0 {
      throw .usage("import: the file ends early: \(counted(missingFeeds, "feed")) should follow \(place)")
    }
  }
}
