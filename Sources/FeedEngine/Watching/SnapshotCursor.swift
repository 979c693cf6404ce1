import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Sends one snapshot of a feed in parts: holds the position and encodes the next part.
final class SnapshotCursor {
  private let snapshot: FeedSnapshot
  private let quotedName: [UInt8]
  private let withTypes: Bool
  /// Whether only the counts of the rows are sent, in one part.
  private let isCounting: Bool
  /// The names of the sections if the snapshot replaces an earlier state of the watcher's copy (`"reset": true`).
  private let resetNames: [String]?
  /// Whether the feed was already undefined when the snapshot was made, so that the watch ends with it.
  private let isEnd: Bool
  private var section = 0
  private var sentAny = false
  private(set) var isDone = false
  /// Rows that were read and did not fit in the last part: elements and their types.
  private var carried: [(text: [UInt8], type: [UInt8])] = []
  /// The types of the rows of the current part, and their number.
  private var types = ByteBuffer()
  private var count = 0

  var revision: UInt64 { snapshot.revision }

  /// Creates a cursor for the current rows of a feed.
  init(of channel: FeedChannel, reset: Bool) {
    snapshot = channel.feed.makeSnapshot()
    quotedName = channel.quotedName
    isCounting = channel.isCounting
    withTypes = channel.feed.hasTypes && !channel.isCounting
    resetNames = reset ? channel.feed.sections.map(\.name) : nil
    isEnd = channel.feed.isGone
  }

  /// Encodes the next part: a whole frame with rows of one section, about `target` bytes of elements and at most
  /// `limit` bytes in all.
  func writePart(to out: inout ByteBuffer, target: Int, limit: Int) {
    skipFinishedSections()
    let frame = out.beginFrame()
    out.beginNotification("snapshot")
    out.append("\"feed\":")
    quotedName.withUnsafeBytes { out.append($0) }
    out.append(",\"revision\":")
    out.append(integer: snapshot.revision)
    let startsReset = resetNames != nil && !sentAny
    if startsReset, let resetNames { appendReset(resetNames, &out) }
    sentAny = true
    if isCounting { section = snapshot.sections.count }
    out.append(",\"at\":")
    out.append(place)
    appendElements(&out, target: target, end: frame + Frame.headerLength + limit, mayBeEmpty: startsReset)
    skipFinishedSections()
    isDone = section >= snapshot.sections.count
    out.append(isDone ? ",\"last\":true" : ",\"last\":false")
    if isDone && isEnd { out.append(",\"ended\":true") }
    out.endMessage()
    out.endFrame(at: frame)
  }

  /// The place of the next row.
  private var place: IndexPath {
    guard section < snapshot.sections.count else { return IndexPath(section: 0, row: 0) }
    return IndexPath(section: UInt32(section), row: UInt32(snapshot.sections[section].position - carried.count))
  }

  /// - Parameters:
  ///   - end: the maximum length of `out`.
  ///   - mayBeEmpty: whether a part without rows makes progress.
  private func appendElements(_ out: inout ByteBuffer, target: Int, end: Int, mayBeEmpty: Bool) {
    types.removeAll(keepingCapacity: true)
    count = 0
    let start = out.count
    out.append(",\"elements\":[")
    if section < snapshot.sections.count {
      let rows = snapshot.sections[section]
      withUnsafeMutablePointer(to: &out) { out in
        let waiting = carried
        carried.removeAll()
        for (text, type) in waiting {
          text.withUnsafeBytes { text in
            type.withUnsafeBytes { add(text, $0, to: &out.pointee, end: end, mayBeEmpty) }
          }
        }
        // Rows are read one at a time until they are known to be small, because rows that do not fit must be carried.
        var step = 1
        while carried.isEmpty && rows.position < rows.count && out.pointee.count &- start < target {
          _ = rows.next(max: step) { row in
            add(row.text, row.type, to: &out.pointee, end: end, mayBeEmpty)
            step = row.text.count < 1024 ? 16 : 1
          }
        }
      }
    }
    out.append(UInt8(ascii: "]"))
    if withTypes {
      out.append(",\"types\":[")
      out.append(types.bytes)
      out.append(UInt8(ascii: "]"))
    }
  }

  /// The bytes after the rows of a part, and between them.
  private static let tail = 64

  /// Adds a row to the part, or carries it to the next one if the frame would exceed its limit.
  private func add(
    _ text: UnsafeRawBufferPointer, _ type: UnsafeRawBufferPointer, to out: inout ByteBuffer, end: Int,
    _ mayBeEmpty: Bool
  ) {
    let after = out.count &+ text.count &+ (withTypes ? types.count &+ type.count : 0) &+ Self.tail
    if !carried.isEmpty || after > end && (count > 0 || mayBeEmpty) {
      carried.append((Array(text), Array(type)))
      return
    }
    if count > 0 { out.append(UInt8(ascii: ",")) }
    out.append(text)
    if withTypes {
      if count > 0 { types.append(UInt8(ascii: ",")) }
      types.append(type: type)
    }
    count &+= 1
  }

  private func appendReset(_ names: [String], _ out: inout ByteBuffer) {
    out.append(",\"reset\":true,\"sections\":")
    out.appendSectionList(zip(names, snapshot.sections).map { ($0, $1.count) })
  }

  private func skipFinishedSections() {
    while carried.isEmpty && section < snapshot.sections.count,
      snapshot.sections[section].position >= snapshot.sections[section].count
    {
      section += 1
    }
  }
}

extension ByteBuffer {
  /// Appends the type of a row as a JSON string, or null.
  mutating func append(typeOf row: Row) { append(type: row.type) }

  /// Appends a type as rows store it, or null if it is empty.
  mutating func append(type: UnsafeRawBufferPointer) {
    if type.isEmpty { append("null") } else { append(type) }
  }

  /// Appends `[{"name":…,"count":…},…]`.
  mutating func appendSectionList(_ sections: [(name: String, count: Int)]) {
    append(UInt8(ascii: "["))
    for (place, section) in sections.enumerated() {
      append(place > 0 ? ",{\"name\":" : "{\"name\":")
      appendJSONString(section.name)
      append(",\"count\":")
      append(integer: section.count)
      append(UInt8(ascii: "}"))
    }
    append(UInt8(ascii: "]"))
  }
}
