import FeedChange
import FeedJSON

/// Writing responses and notifications ("Messages" in `Protocol/README.md`).
extension ByteBuffer {
  /// Appends `{"jsonrpc":"2.0","id":…,"result":{`; `id` is the JSON text of the id. The caller appends the members of the result
  /// and calls `endMessage`.
  public mutating func beginResult(id: UnsafeRawBufferPointer) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    append(id)
    append(",\"result\":{")
  }

  /// Appends `{"jsonrpc":"2.0","method":…,"params":{`. The caller appends the parameters and calls `endMessage`.
  public mutating func beginNotification(_ method: StaticString) {
    append("{\"jsonrpc\":\"2.0\",\"method\":\"")
    append(method)
    append("\",\"params\":{")
  }

  /// Appends a frame with a notification about a feed, and returns its place. `body` appends the parameters besides `feed`.
  public mutating func appendNotification(
    _ method: StaticString, of feed: String, _ body: (inout ByteBuffer) -> Void
  ) -> Range<Int> {
    let start = beginFrame()
    beginNotification(method)
    append("\"feed\":", quoted: feed)
    body(&self)
    endMessage()
    endFrame(at: start)
    return start..<count
  }

  /// Appends the closing braces of a result or a notification.
  public mutating func endMessage() { append("}}") }

  /// Appends a complete error response; `id` is the JSON text of the id. An absent id is written as null.
  public mutating func appendError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    beginError(error, id: id)
    appendJSONString(error.message)
    append(",\"data\":{")
    error.appendData(to: &self)
    append("}}}")
  }

  /// Appends an error response without the message and data, for an error that exceeds `maxFrame`. At most 96 bytes and those
  /// of the id.
  public mutating func appendShortError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    beginError(error, id: id)
    append("\"message too long for maxFrame\"}}")
  }

  private mutating func beginError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    if let id { append(id) } else { append("null") }
    append(",\"error\":{\"code\":", integer: error.code)
    append(",\"message\":")
  }

  /// Appends a frame with a complete `bye` notification.
  public mutating func appendByeFrame(reason: String, message: String) {
    let start = beginFrame()
    beginNotification("bye")
    append("\"reason\":", quoted: reason)
    append(",\"message\":", quoted: message)
    endMessage()
    endFrame(at: start)
  }
}

/// Writing changes ("The change" in `Protocol/README.md`).
extension ByteBuffer {
  /// Appends the members of a change: `deleted`, `added`, `updated`, and if they are not empty `sections` and `moves`. O(size).
  /// - Parameters:
  ///   - namesSections: false to write empty names of added sections.
  ///   - step: called after each thousand rows.
  public mutating func append(_ change: borrowing Change, namesSections: Bool = true, step: () -> Void = {}) {
    append("\"deleted\":")
    append(change.deleted, step: step)
    append(",\"added\":")
    append(change.added, step: step)
    append(",\"updated\":")
    append(change.updated, step: step)
    append(sectionsOf: change, namesSections: namesSections)
    if !change.moves.isEmpty { append(change.moves, step: step) }
  }

  /// Appends `"counts":{…}`: how many entries the lists of a change have. O(1).
  public mutating func append(countsOf change: borrowing Change) {
    append("\"counts\":{\"deleted\":", integer: change.deleted.count)
    append(",\"added\":", integer: change.added.count)
    append(",\"updated\":", integer: change.updated.count)
    append(",\"moves\":", integer: change.moves.count)
    if !change.hasSameSections {
      append(",\"sections\":{\"deleted\":", integer: change.sectionsDeleted.count)
      append(",\"added\":", integer: change.sectionsAdded.count)
      append(UInt8(ascii: "}"))
    }
    append(UInt8(ascii: "}"))
  }

  public mutating func append(_ row: ChangeOfOne) {
    switch row {
    case .updated(let path):
      append("\"deleted\":[],\"added\":[],\"updated\":[[")
      append(membersOf: path)
      append("]]")
    case .added(let path):
      append("\"deleted\":[],\"added\":[[")
      append(membersOf: path)
      append("]],\"updated\":[]")
    case .deleted(let path):
      append("\"deleted\":[[")
      append(membersOf: path)
      append("]],\"added\":[],\"updated\":[]")
    case .moved(let from, let to):
      append("\"deleted\":[[")
      append(membersOf: from)
      append("]],\"added\":[[")
      append(membersOf: to)
      append("]],\"updated\":[],\"moves\":[[0,0]]")
    }
  }

  /// Appends `,"sections":…` if the change deletes or adds sections.
  public mutating func append(sectionsOf change: borrowing Change, namesSections: Bool = true) {
    if !change.hasSameSections { appendSections(change.sectionsDeleted, change.sectionsAdded, namesSections) }
  }

  /// Appends index paths as an array of arrays `[section,row]`.
  public mutating func append(_ paths: [IndexPath], step: () -> Void = {}) {
    if paths.isEmpty { return append("[]") }
    append(UInt8(ascii: "["))
    for (place, path) in paths.enumerated() {
      if place > 0 { append(UInt8(ascii: ",")) }
      if place & 1023 == 1023 { step() }
      append(path)
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends an index path as `[section,row]`.
  public mutating func append(_ path: IndexPath) {
    append(UInt8(ascii: "["))
    append(membersOf: path)
    append(UInt8(ascii: "]"))
  }

  /// Appends the section and the row of a path, without brackets.
  @inline(__always)
  private mutating func append(membersOf path: IndexPath) {
    append(integer: path.section)
    append(UInt8(ascii: ","))
    append(integer: path.row)
  }

  private mutating func appendSections(_ deleted: [UInt32], _ added: [SectionAddition], _ namesSections: Bool) {
    append(",\"sections\":{\"deleted\":[")
    // Iterates by index: an iterator would count references.
    for place in deleted.indices {
      if place > 0 { append(UInt8(ascii: ",")) }
      append(integer: deleted[place])
    }
    append("],\"added\":[")
    for place in added.indices {
      append(place > 0 ? ",{\"at\":" : "{\"at\":", integer: added[place].at)
      append(",\"name\":")
      if namesSections {
        added[place].withNameBytes {
          appendJSONString(utf8: $0)
          if added[place].isByValue { appendKey(ofSection: $0) }
        }
      } else {
        append("\"\"")
      }
      append(UInt8(ascii: "}"))
    }
    append("]}")
  }

  /// Appends `,"key":…`: the value of a section by value.
  public mutating func appendKey(ofSection name: UnsafeRawBufferPointer) {
    append(",\"key\":")
    appendValue(ofSection: name)
  }

  /// Appends the value of a section by value, which its name tells; null for the section of rows without a value.
  fileprivate mutating func appendValue(ofSection name: UnsafeRawBufferPointer) {
    guard let slash = name.firstIndex(of: UInt8(ascii: "/")) else { return append("null") }
    let value = UnsafeRawBufferPointer(rebasing: name[(slash + 1)...])
    // By the first byte, which decides for most names: a feed may have many sections.
    let isJSON =
      switch value.first {
      case UInt8(ascii: "\""): true
      case UInt8(ascii: "t"): value.elementsEqual("true".utf8)
      case UInt8(ascii: "f"): value.elementsEqual("false".utf8)
      default: JSONNumber.isCanonical(value)
      }
    if isJSON { append(value) } else { appendJSONString(utf8: value) }
  }

  private mutating func append(_ moves: [Move], step: () -> Void) {
    append(",\"moves\":[")
    for (place, move) in moves.enumerated() {
      append(place == 0 ? "[" : ",[")
      if place & 1023 == 1023 { step() }
      append(integer: move.deleted)
      append(UInt8(ascii: ","))
      append(integer: move.added)
      append(UInt8(ascii: "]"))
    }
    append(UInt8(ascii: "]"))
  }
}

extension SectionAddition {
  /// The value of a section by value, as JSON text; nil for other sections.
  public var key: [UInt8]? {
    guard isByValue else { return nil }
    var text = ByteBuffer()
    withNameBytes { text.appendValue(ofSection: $0) }
    return Array(text.bytes)
  }
}
