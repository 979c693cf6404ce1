import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Sends one snapshot of a feed in parts: holds the position and encodes the next part.
final class SnapshotCursor {
  private let snapshot: FeedSnapshot
  /// Whether only the counts of the rows are sent, in one part.
  private let isCounting: Bool
  /// Whether the rows of a part may be of several sections.
  private let spansSections: Bool
  /// What every part begins with, up to the revision.
  private var head = ByteBuffer()
  /// The list of sections if the snapshot replaces an earlier state of the watcher's copy (`"reset": true`), until it is
  /// sent.
  private var resetList: ByteBuffer?
  /// Whether the feed was already undefined when the snapshot was made, so that the watch ends with it.
  private let isEnd: Bool
  private(set) var isDone = false
  /// Rows that were read and did not fit in the last part: elements and their types.
  private var carried: [(text: [UInt8], type: [UInt8])] = []
  /// The place of the first of them.
  private var carriedPlace = IndexPath(section: 0, row: 0)
  /// Writes the rows of the current part.
  private var rows: RowsWriter

  var revision: UInt64 { snapshot.revision }

  /// Creates a cursor for the current rows of a feed.
  init(of channel: FeedChannel, reset: Bool, spansSections: Bool, chargedTo memory: SnapshotMemory) {
    self.spansSections = spansSections
    snapshot = channel.feed.makeSnapshot(chargedTo: memory)
    isCounting = channel.isCounting
    rows = RowsWriter(withTypes: channel.feed.hasTypes && !channel.isCounting)
    isEnd = channel.feed.isGone
    head.beginNotification("snapshot")
    head.append("\"feed\":", quoted: channel.feed.name)
    head.append(",\"revision\":", integer: snapshot.revision)
    if reset {
      var list = ByteBuffer()
      list.appendSectionList(of: channel.feed)
      resetList = consume list
    }
  }

  /// Whether the list of sections of a reset leaves a frame of `limit` bytes room for the rest.
  func fits(_ limit: Int) -> Bool { head.count &+ (resetList?.count ?? 0) &+ 2 &* Self.tail <= limit }

  /// Encodes the next parts, at least one: whole frames, each with rows of one section unless parts may span sections. Stops
  /// after about `target` bytes of elements. A part with several rows takes at most `limit` bytes.
  func writeParts(to out: inout ByteBuffer, target: Int, limit: Int) {
    let start = out.count
    // A part follows while it cannot make the sum much longer than the target.
    repeat { writePart(to: &out, target: target, limit: limit) } while !isDone && out.count &- start < target / 2
  }

  private func writePart(to out: inout ByteBuffer, target: Int, limit: Int) {
    let frame = out.beginFrame()
    out.append(head.bytes)
    let startsReset = resetList != nil
    if let list = resetList.take() {
      out.append(",\"reset\":true,\"sections\":")
      out.append(list.bytes)
    }
    let place = isCounting ? IndexPath(section: 0, row: 0) : carried.isEmpty ? snapshot.place : carriedPlace
    out.append(",\"at\":")
    out.append(place)
    rows.begin(&out)
    if !isCounting {
      appendRows(from: place, &out, target: target, end: frame + Frame.headerLength + limit, mayBeEmpty: startsReset)
    }
    rows.end(&out)
    isDone = isCounting || carried.isEmpty && snapshot.isFinished
    out.append(isDone ? ",\"last\":true" : ",\"last\":false")
    if isDone && isEnd { out.append(",\"ended\":true") }
    out.endMessage()
    out.endFrame(at: frame)
  }

  /// - Parameters:
  ///   - place: that of the next row.
  ///   - end: the maximum length of `out`.
  ///   - mayBeEmpty: whether a part without rows makes progress.
  private func appendRows(
    from place: IndexPath, _ out: inout ByteBuffer, target: Int, end: Int, mayBeEmpty: Bool
  ) {
    let start = out.count
    withUnsafeMutablePointer(to: &out) { out in
      // Most parts have no such rows.
      let waiting = carried.isEmpty ? [] : carried
      if !waiting.isEmpty { carried.removeAll() }
      for (text, type) in waiting {
        text.withUnsafeBytes { text in
          type.withUnsafeBytes { add(text, $0, to: &out.pointee, from: place, end: end, mayBeEmpty) }
        }
      }
      // Rows are read one at a time until they are known to be small, because rows that do not fit must be carried.
      var step = 1
      while carried.isEmpty && !snapshot.isFinished && (spansSections || snapshot.section == place.section),
        out.pointee.count &- start < target
      {
        _ = snapshot.next(max: step, acrossSections: spansSections) { row in
          add(row.text, row.type, to: &out.pointee, from: place, end: end, mayBeEmpty)
          step = row.text.count < 1024 ? 16 : 1
        }
      }
    }
  }

  /// The bytes after the rows of a part, and between them.
  private static let tail = 64

  /// Adds a row to the part, or carries it to the next one if the frame would exceed its limit.
  private func add(
    _ text: UnsafeRawBufferPointer, _ type: UnsafeRawBufferPointer, to out: inout ByteBuffer, from place: IndexPath,
    end: Int, _ mayBeEmpty: Bool
  ) {
    let after = out.count &+ text.count &+ (rows.withTypes ? rows.typesSize &+ type.count : 0) &+ Self.tail
    if !carried.isEmpty || after > end && (rows.count > 0 || mayBeEmpty) {
      if carried.isEmpty { carriedPlace = snapshot.place(rows.count, after: place) }
      carried.append((Array(text), Array(type)))
      return
    }
    rows.append(text, type: type, to: &out)
  }
}
