import FeedChange
import FeedJSON
import FeedModel

/// `verify`: counts, and the CRC-32 of the compact JSON `[[elements of section 0],…]` of a feed at one revision.
final class DigestJob: Job {
  private let snapshot: FeedSnapshot
  private var reader: SectionReader
  private var crc = CRC32()
  /// Whether the next row is the first of its section.
  private var isFirst = true

  /// None besides the snapshot, which is charged by itself.
  let memory = 0

  init(_ feed: Feed, chargedTo memory: SnapshotMemory) {
    snapshot = feed.makeSnapshot(chargedTo: memory)
    reader = SectionReader(snapshot)
    update("[")
  }

  func advance(budget: inout Int) throws(FeedError) -> Bool {
    let isDone = reader.advance(budget: &budget) { item in
      switch item {
      case .begin(let section):
        update(section == 0 ? "[" : ",[")
        isFirst = true
      case .row(let row):
        if !isFirst { update(",") }
        isFirst = false
        crc.update(row.text)
      case .end: update("]")
      }
    }
    if isDone { update("]") }
    return isDone
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"revision\":", integer: snapshot.revision)
    out.append(",\"counts\":[")
    for (place, count) in snapshot.sectionCounts.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.append(integer: count)
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
  /// A watch that had not reached its revision. While it has not, the others are not looked at: connections with many watches
  /// may wait for a long time, and each turn looks at all of them.
  private var missing: Int?

  var memory: Int { targets.count * MemoryLayout<(Watch, UInt64)>.stride }

  /// The watches that are looked at in a microsecond.
  private static let targetsPerUnit = 32

  /// Only progress of the watches completes the answer.
  let isWaiting = true

  /// Makes the next delta of a watch ignore its throttle.
  private let hurry: (Watch) -> Void

  init(_ session: Session, revision: UInt64, hurry: @escaping (Watch) -> Void) {
    (self.hurry, self.revision) = (hurry, revision)
    targets = session.watches.map { ($0, $0.channel.feed.revision) }
  }

  func advance(budget: inout Int) throws(FeedError) -> Bool {
    if let missing, isMissing(missing) {
      hurry(targets[missing].watch)
      return false
    }
    // All are looked at: output that was discarded meanwhile sets watches back.
    budget -= targets.count / Self.targetsPerUnit
    missing = nil
    for place in targets.indices where isMissing(place) {
      hurry(targets[place].watch)
      missing = place
    }
    return missing == nil
  }

  /// Whether a watch has not reached its revision. One that has ended need not.
  private func isMissing(_ place: Int) -> Bool {
    let (watch, target) = targets[place]
    return !watch.isEnded && (watch.isSnapshotting || watch.revision < target)
  }

  func appendResult(to out: inout ByteBuffer) { out.append("\"revision\":", integer: revision) }
}
