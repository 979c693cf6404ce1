import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `verify`: counts and CRC-32 of the compact JSON `[[elements of section 0],…]` of a feed at one revision.
final class DigestJob: Job {
  private let snapshot: FeedSnapshot
  private var section = 0
  private var crc = CRC32()

  init(_ feed: Feed) {
    snapshot = feed.makeSnapshot()
    update("[")
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var left = budget
    while section < snapshot.sections.count && left > 0 {
      let rows = snapshot.sections[section]
      if rows.position == 0 { update(section == 0 ? "[" : ",[") }
      var first = rows.position == 0
      left -= rows.next(max: left) { text in
        if !first { update(",") }
        first = false
        crc.update(text.text)
      }
      if rows.position >= rows.count {
        update("]")
        section += 1
      }
    }
    if section < snapshot.sections.count { return false }
    update("]")
    return true
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"revision\":")
    out.append(integer: snapshot.revision)
    out.append(",\"counts\":[")
    for (place, section) in snapshot.sections.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.append(integer: section.count)
    }
    out.append("],\"digest\":\"")
    out.append(string: crc.hex8)
    out.append("\"")
  }

  private func update(_ text: StaticString) {
    crc.update(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
