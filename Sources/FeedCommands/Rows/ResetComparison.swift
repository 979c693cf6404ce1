import FeedChange
import FeedClient
import FeedJSON

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

/// The rows of one revision of a feed, to compare later ones with.
struct SavedRows {
  var sections: [SectionSummary]
  /// The print of each row; nil if they are not known.
  var prints: [Mirror.Section]?

  init(sections: [SectionSummary], prints: [Mirror.Section]?) {
    self.sections = sections
    self.prints = prints
  }

  /// Reads the array that ``text(maxRows:maxBytes:)`` returned; nil if there is none, or it is something else.
  init?(_ view: JSONView?) {
    guard let view, view.kind == .array else { return nil }
    sections = []
    var prints: [Mirror.Section]? = []
    for entry in view.elements {
      guard let name = entry.member("name")?.string, let count = entry.member("count")?.int, count >= 0 else {
        return nil
      }
      let key = entry.member("key")?.compactText
      sections.append(SectionSummary(name: name, key: key, count: count))
      guard let texts = entry.member("rows")?.elements.map(\.compactText) else {
        prints = nil
        continue
      }
      guard texts.count == count, texts.allSatisfy({ RowPrint($0) != nil }) else { return nil }
      var rows = ChunkedList<Row>()
      rows.append(contentsOf: texts.map { Row(element: $0) })
      prints?.append(Mirror.Section(name: name, key: key, rows: rows))
    }
    self.prints = prints
  }

  /// Returns the sections with their prints as a JSON array, of at most `maxBytes` bytes.
  ///
  /// The prints are left out if there are more than `maxRows` rows, or if the array would be too long. Everything is left out
  /// if there are as many sections, or if their names alone are too long.
  func text(maxRows: Int, maxBytes: Int) -> String? {
    guard sections.count <= maxRows else { return nil }
    let prints = self.prints.flatMap { fits($0, maxRows: maxRows, maxBytes: maxBytes) ? $0 : nil }
    if let prints, let text = text(prints, maxBytes: maxBytes) { return text }
    return text(nil, maxBytes: maxBytes)
  }

  /// Returns the array with these prints; nil if it is too long.
  private func text(_ prints: [Mirror.Section]?, maxBytes: Int) -> String? {
    var text = "["
    for (number, section) in sections.enumerated() {
      if number > 0 { text += "," }
      var object = ParameterWriter(section)
      if let rows = prints?[number].rows {
        object.add("rows", json: rows.map { String(decoding: $0.element, as: UTF8.self) })
      }
      text += object.finish()
      guard text.utf8.count < maxBytes else { return nil }
    }
    return text + "]"
  }

  /// Whether there are not too many rows, nor clearly too many bytes of them to write the text.
  private func fits(_ prints: [Mirror.Section], maxRows: Int, maxBytes: Int) -> Bool {
    guard prints.count == sections.count, sections.reduce(0, { $0 + $1.count }) <= maxRows else { return false }
    var bytes = 0
    for section in prints {
      for row in section.rows { bytes += row.element.count + 1 }
    }
    return bytes <= maxBytes
  }
}
