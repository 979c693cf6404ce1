/// All rows of a query: compact JSON objects in the order of the query, each with its section.
///
/// The reader of the database creates it on any thread and passes it to the model. All texts are in one block of bytes.
public struct ManagedRows: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    let section: Int
    let start: Int
    let end: Int
  }

  private(set) var bytes: [UInt8] = []
  private(set) var entries: [Entry] = []
  /// The values of the section column in order of first appearance; "" is the section of rows without a value.
  public private(set) var sections: [String] = []
  private var places: [String: Int] = [:]

  public init() {}

  /// The number of rows.
  public var count: Int { entries.count }
  /// The number of bytes of all texts.
  public var byteCount: Int { bytes.count }

  /// Appends a row. O(text).
  /// - Parameters:
  ///   - text: one compact JSON object.
  ///   - section: the value of the section column as text; "" if the feed has no section column or the value is NULL.
  public mutating func append(_ text: UnsafeRawBufferPointer, section: String = "") {
    let start = bytes.count
    bytes.append(contentsOf: text)
    entries.append(Entry(section: place(of: section), start: start, end: bytes.count))
  }

  private mutating func place(of section: String) -> Int {
    // Rows of one section are usually adjacent.
    if let last = entries.last, sections[last.section] == section { return last.section }
    if let known = places[section] { return known }
    places[section] = sections.count
    sections.append(section)
    return sections.count - 1
  }
}
