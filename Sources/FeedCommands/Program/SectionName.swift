import FeedClient
import FeedJSON

/// The section that `--section` names, of a feed whose sections come and go.
struct SectionName {
  let feed: String
  let word: String

  /// Whether a row is in this section: the word is the name of it, the part after the name of its feed, or its value as JSON.
  func contains(_ place: RowChange.Place?) -> Bool {
    guard let place, let name = place.section else { return false }
    return names(name, key: place.key)
  }

  private func names(_ name: String, key: [UInt8]?) -> Bool {
    name == word || !word.hasPrefix("\(feed)/") && Self.names(word, name, key: key)
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
    let advice = Spelling.suggestion(for: word, in: sections.map { Self.short($0.name) })
    return "'\(feed)' has no section '\(word)' now\(advice)"
  }

  /// Whether a word is the name of a section without that of its feed, or its value as JSON.
  static func names(_ word: String, _ name: String, key: [UInt8]?) -> Bool {
    if short(name) == word { return true }
    guard let key, Operands.isScalar(word) else { return false }
    return RowPrint.canonical(Array(word.utf8)) == RowPrint.canonical(key)
  }

  /// The name without that of its feed, which has no slash.
  static func short(_ name: String) -> String {
    guard let slash = name.firstIndex(of: "/") else { return name }
    return String(name[name.index(after: slash)...])
  }
}
