import FeedClient
import FeedJSON

/// The section that `--section` names, of a feed whose sections come and go.
struct SectionName {
  let feed: String
  let word: String
  private let key: [UInt8]?

  init(feed: String, word: String) {
    (self.feed, self.word) = (feed, word)
    key = Self.key(word)
  }

  /// A word as the key of a section by value; nil if it is not JSON.
  static func key(_ word: String) -> [UInt8]? {
    Operands.isScalar(word) ? RowPrint.canonical(Array(word.utf8)) : nil
  }

  /// Whether a row is in this section: the word is the name of it, the part after the name of its feed, or its value as JSON.
  func contains(_ place: RowChange.Place?) -> Bool {
    guard let place, let name = place.section else { return false }
    return names(name, key: place.key)
  }

  private func names(_ name: String, key: [UInt8]?) -> Bool {
    name.isSame(as: word) || !word.hasPrefix("\(feed)/") && abbreviates(name, key: key)
  }

  /// What a change of a row is for those who see only this section.
  enum Passage {
    case inside, enters, leaves, outside
  }

  /// A row whose section was deleted while nobody followed the feed may have been in this one.
  func passage(from before: RowChange.Place?, to after: RowChange.Place?) -> Passage {
    let wasInside = contains(before) || before != nil && before?.section == nil
    return switch (wasInside, contains(after)) {
    case (true, true): .inside
    case (false, true): .enters
    case (true, false): .leaves
    case (false, false): .outside
    }
  }

  /// Checks the word with the present sections. One by value may come later, but a bin does not.
  ///
  /// - Throws: a usage error if the word can mean several sections.
  /// - Returns: a remark if it means none.
  func check(_ sections: [SectionSummary]) throws(Failure) -> String? {
    let named = sections.filter { names($0.name, key: $0.key) }.map(\.name)
    let distinct = Set(named).sorted()
    if distinct.count > 1 {
      let list = distinct.joined(separator: ", ")
      throw .usage("section '\(word)' of '\(feed)' is ambiguous: \(list); give the whole name")
    }
    if !distinct.isEmpty { return nil }
    let advice = Spelling.suggestion(for: word, in: sections.map { String(Self.short($0.name)) })
    return "'\(feed)' has no section '\(word)' now\(advice)"
  }

  /// Whether the word is the name of a section without that of its feed, or its value as JSON.
  func abbreviates(_ name: String, key: [UInt8]?) -> Bool {
    Self.short(name).isSame(as: word) || key != nil && key == self.key
  }

  /// The name without that of its feed, which has no slash.
  static func short(_ name: String) -> Substring {
    let bytes = name.utf8
    guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")) else { return name[...] }
    return name[bytes.index(after: slash)...]
  }
}

extension StringProtocol {
  /// Whether the bytes are the same. Names that are equal only after normalisation are different names.
  func isSame(as other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}
