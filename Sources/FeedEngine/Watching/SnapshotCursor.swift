import FeedJSON
import FeedModel
import FeedWire

/// Sends one snapshot of a feed in parts: where it stands, and how the next part is written.
final class SnapshotCursor {
  private let snapshot: FeedSnapshot
  private let quotedName: [UInt8]
  private let withTypes: Bool
  /// Whether the series replaces what the watcher had.
  private let isReset: Bool
  /// Whether the feed was gone when the snapshot was made, so that nothing follows.
  private let isEnd: Bool
  private var section = 0
  private var sentAny = false
  private(set) var isDone = false

  var revision: UInt64 { snapshot.revision }

  init(_ snapshot: FeedSnapshot, of channel: FeedChannel, reset: Bool) {
    self.snapshot = snapshot
    quotedName = channel.quotedName
    withTypes = channel.feed.hasTypes
    isReset = reset
    isEnd = channel.feed.isGone
  }

  /// Writes the next part, a whole frame of about `target` bytes of elements, all of one section.
  func writePart(to out: inout ByteBuffer, target: Int) {
    skipFinishedSections()
    let frame = out.beginFrame()
    out.beginNotification("snapshot")
    out.append("\"feed\":")
    quotedName.withUnsafeBytes { out.append($0) }
    out.append(",\"revision\":")
    out.append(integer: snapshot.revision)
    if isReset && !sentAny { appendReset(&out) }
    sentAny = true
    let row = section < snapshot.sections.count ? snapshot.sections[section].position : 0
    out.append(",\"at\":")
    out.append(IndexPath(section: UInt32(section < snapshot.sections.count ? section : 0), row: UInt32(row)))
    appendElements(&out, target: target)
    skipFinishedSections()
    isDone = section >= snapshot.sections.count
    out.append(isDone ? ",\"last\":true" : ",\"last\":false")
    if isDone && isEnd { out.append(",\"ended\":true") }
    out.endMessage()
    out.endFrame(at: frame)
  }

  private func appendElements(_ out: inout ByteBuffer, target: Int) {
    var types = ByteBuffer()
    let start = out.count
    out.append(",\"elements\":[")
    if section < snapshot.sections.count {
      let rows = snapshot.sections[section]
      var first = true
      // One at a time until they are known to be small: a frame must not outgrow its limit.
      var step = 1
      while rows.position < rows.count && out.count &- start < target {
        let withTypes = withTypes
        withUnsafeMutablePointer(to: &out) { out in
          _ = rows.next(max: step) { row in
            if !first {
              out.pointee.append(UInt8(ascii: ","))
              if withTypes { types.append(UInt8(ascii: ",")) }
            }
            first = false
            out.pointee.append(row.text)
            if withTypes { types.append(typeOf: row) }
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

  private func appendReset(_ out: inout ByteBuffer) {
    out.append(",\"reset\":true,\"sections\":")
    out.appendSectionList(snapshot.sections.map { ($0.name, $0.count) })
  }

  private func skipFinishedSections() {
    while section < snapshot.sections.count, snapshot.sections[section].position >= snapshot.sections[section].count {
      section += 1
    }
  }
}

extension ByteBuffer {
  /// Appends the JSON string that names an element's type, or null.
  mutating func append(typeOf row: Row) {
    let type = row.type
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
