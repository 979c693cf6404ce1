import FeedChange
import FeedClient
import FeedJSON

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

  /// Returns the sections with their prints as a JSON array.
  ///
  /// The prints are left out if there are more than `maxRows` rows, or more than `maxBytes` bytes; with as many sections,
  /// everything is left out.
  func text(maxRows: Int, maxBytes: Int) -> String? {
    guard sections.count <= maxRows else { return nil }
    let prints = self.prints.flatMap { fits($0, maxRows: maxRows, maxBytes: maxBytes) ? $0 : nil }
    var text = "["
    for (number, section) in sections.enumerated() {
      if number > 0 { text += "," }
      var object = ParameterWriter(section)
      if let rows = prints?[number].rows {
        object.add("rows", json: rows.map { String(decoding: $0.element, as: UTF8.self) })
      }
      text += object.finish()
    }
    return text + "]"
  }

  private func fits(_ prints: [Mirror.Section], maxRows: Int, maxBytes: Int) -> Bool {
    guard prints.count == sections.count, sections.reduce(0, { $0 + $1.count }) <= maxRows else { return false }
    var bytes = 0
    for section in prints {
      for row in section.rows { bytes += row.element.count + 1 }
    }
    return bytes <= maxBytes
  }
}
