import FeedChange
import FeedClient

/// Compares the rows of a new snapshot with those known before it, by identity and digest.
///
/// A row with an identity is compared with one of the same identity, if there are several with one of the same section. A row
/// without one is the same as any with the same digest.
struct ResetComparison {
  private struct Known {
    var place: RowChange.Place
    var print: RowPrint
    var isTaken = false
  }

  private var known: [Known] = []
  /// The indexes in `known` by identity, or by digest for rows without one; the first one is at the end.
  private var byID: [[UInt8]: [Int]] = [:]
  private var byDigest: [UInt64: [Int]] = [:]

  /// Creates the comparison with the rows of a mirror of prints.
  init(_ sections: [Mirror.Section]) {
    for (number, section) in sections.enumerated() {
      for (row, text) in section.rows.enumerated() {
        guard let print = RowPrint(text.element) else { continue }
        let path = IndexPath(section: UInt32(number), row: UInt32(row))
        known.append(Known(place: RowChange.Place(path: path, section: section.name, key: section.key), print: print))
      }
    }
    for index in known.indices.reversed() {
      if let id = known[index].print.id {
        byID[RowPrint.canonical(id), default: []].append(index)
      } else {
        byDigest[known[index].print.digest, default: []].append(index)
      }
    }
  }

  /// Judges a row of the snapshot, and takes the known row that it is.
  mutating func judge(
    _ print: RowPrint, section: String?
  ) -> (kind: RowChange.Kind, before: RowChange.Place?) {
    guard let index = take(print, section) else { return (.added, nil) }
    known[index].isTaken = true
    let (before, isSame) = (known[index].place, known[index].print.digest == print.digest)
    if before.section == section { return (isSame ? .unchanged : .updated, before) }
    return (isSame ? .moved : .movedAndUpdated, before)
  }

  private mutating func take(_ print: RowPrint, _ section: String?) -> Int? {
    guard let id = print.id else { return Self.take(from: &byDigest[print.digest], section, known) }
    return Self.take(from: &byID[RowPrint.canonical(id)], section, known)
  }

  private static func take(from list: inout [Int]?, _ section: String?, _ known: [Known]) -> Int? {
    guard let place = list?.lastIndex(where: { known[$0].place.section == section }) ?? list?.indices.last else {
      return nil
    }
    return list?.remove(at: place)
  }

  /// The known rows that the snapshot did not have, in order.
  var missing: [RowChange] {
    known.filter { !$0.isTaken }.map {
      RowChange(kind: .deleted, before: $0.place, id: $0.print.id, isAccepted: $0.print.isAccepted)
    }
  }
}
