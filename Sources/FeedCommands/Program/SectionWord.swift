import FeedClient
import FeedJSON

/// The section that `--section` names, of a feed whose sections come and go.
struct SectionWord {
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

  /// The name of the feed, which has no slash. The section of a value that begins with a combining character has no character
  /// "/", but the byte.
  static func feed(of name: String) -> String {
    String(decoding: name.utf8.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
  }

  /// The name without that of its feed.
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

/// Finds the section of a feed that a word of the command line names: its name, the last part of that, the value that it is the
/// section of as JSON, or the text that it is the section of.
struct SectionLookup {
  private struct Section {
    var name: String
    /// The value of a section by value as JSON, and as a text if it is one.
    var key: [UInt8]?
    var text: String?
  }

  private let sections: [Section]

  /// Reads the member `sections` of the answer to `describe`.
  init(_ list: JSONView?) {
    sections = (list.map { Array($0.elements) } ?? []).map { section in
      let key = section.member("key")
      return Section(name: section.member("name")?.string ?? "", key: key?.compactText, text: key?.string)
    }
  }

  /// Returns the index of the section.
  /// - Throws: a usage error if there is none, or if the word can mean several.
  func find(_ word: String, in feed: String) throws(Failure) -> Int {
    let name = SectionWord(feed: feed, word: word)
    // A whole name is unique, unless the feed shows another one several times.
    let named = sections.indices.filter { sections[$0].name.isSame(as: word) }
    let matches = named.isEmpty ? sections.indices.filter { abbreviates(name, $0) } : named
    if matches.count == 1 { return matches[0] }
    if matches.count > 1 {
      let list = matches.map { "\(sections[$0].name) (\($0))" }.joined(separator: ", ")
      throw .usage(
        "section '\(word)' of '\(feed)' is ambiguous: \(list); give the whole name, or the number in parentheses")
    }
    let short = sections.map { String(SectionWord.short($0.name)) }
    let list = short.isEmpty ? "it has no sections" : "its sections are \(short.joined(separator: ", "))"
    throw .usage(
      "'\(feed)' has no section '\(word)'" + Spelling.suggestion(for: word, in: short, otherwise: "; \(list)"))
  }

  /// The shortest words that name each section. A number would be that of a section. O(sections).
  func words() -> [String] {
    let names = Set(sections.map(\.name))
    let keys = Set(sections.compactMap(\.key))
    var counts: [String: Int] = [:]
    for section in sections { for word in Self.abbreviations(of: section) { counts[word, default: 0] += 1 } }
    return sections.map { section in
      let short = String(SectionWord.short(section.name))
      if short.isSame(as: section.name) { return short }
      let key = SectionWord.key(short)
      let isUnique = counts[short] == 1 && !names.contains(short) && (key == section.key || !keys.contains(key ?? []))
      return isUnique && Int(short) == nil ? short : section.name
    }
  }

  private func abbreviates(_ word: SectionWord, _ index: Int) -> Bool {
    word.abbreviates(sections[index].name, key: sections[index].key)
      || Self.abbreviations(of: sections[index]).contains { $0.isSame(as: word.word) }
  }

  /// The words that mean a section beside its whole name and its key: the part after the name of its feed, its text, and its text
  /// after the name of its feed.
  private static func abbreviations(of section: Section) -> Set<String> {
    let short = String(SectionWord.short(section.name))
    guard let text = section.text else { return [short] }
    return [short, text, String(decoding: section.name.utf8.dropLast(short.utf8.count), as: UTF8.self) + text]
  }
}
