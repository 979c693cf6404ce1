import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `verify`: counts, and the CRC-32 of the compact JSON `[[elements of section 0],…]` of a feed at one revision.
final class DigestJob: Job {
  private let snapshot: FeedSnapshot
  private var section = 0
  private var crc = CRC32()

  /// The number of rows that are read between checks of the budget.
  private static let rowsAtOnce = 16

  /// None: the snapshot shares its rows with the feed.
  let memory = 0

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
      let count = rows.next(max: min(left, Self.rowsAtOnce)) { text in
        if !first { update(",") }
        first = false
        crc.update(text.text)
        left -= WorkCost.reading(0, bytes: text.text.count)
      }
      left -= max(1, count)
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

/// `sync`: waits until every delta up to its revision has been queued to its connection.
final class SyncJob: Job {
  private let revision: UInt64
  /// The watches of the connection, each with the revision that it must reach.
  private let targets: [(watch: Watch, revision: UInt64)]

  var memory: Int { targets.count * MemoryLayout<(Watch, UInt64)>.stride }

  /// Only progress of the watches completes the answer.
  let isWaiting = true

  /// Makes the next delta of a watch ignore its throttle.
  private let hurry: (Watch) -> Void

  init(_ session: Session, revision: UInt64, hurry: @escaping (Watch) -> Void) {
    self.hurry = hurry
    self.revision = revision
    targets = session.watches.map { ($0, $0.channel.feed.revision) }
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var ready = true
    for (watch, target) in targets where !watch.isEnded && (watch.isSnapshotting || watch.revision < target) {
      hurry(watch)
      ready = false
    }
    return ready
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"revision\":")
    out.append(integer: revision)
  }
}
