import FeedClient
import FeedJSON

/// Finds the section of a feed that a word of the command line names: its name, the last part of that, the value that it is the
/// section of as JSON, or the text that it is the section of.
struct SectionLookup {
  private let sections: [(name: String, key: [UInt8]?, text: String?)]

  /// Reads the member `sections` of the answer to `describe`.
  init(_ list: JSONView?) {
    sections = (list.map { Array($0.elements) } ?? []).map { section in
      let key = section.member("key")
      return (section.member("name")?.string ?? "", key?.compactText, key?.string)
    }
  }

  /// Returns the index of the section.
  ///
  /// - Throws: a usage error if there is none, or if the word can mean several.
  func find(_ word: String, in feed: String) throws(Failure) -> Int {
    // A whole name is unique, unless the feed shows another one several times.
    let named = sections.indices.filter { sections[$0].name == word }
    let matches = named.isEmpty ? sections.indices.filter { abbreviates(word, $0) } : named
    if matches.count == 1 { return matches[0] }
    if matches.count > 1 {
      let list = matches.map { "\(sections[$0].name) (\($0))" }.joined(separator: ", ")
      throw .usage(
        "section '\(word)' of '\(feed)' is ambiguous: \(list); give the whole name, or the number in parentheses")
    }
    let short = sections.map { SectionName.short($0.name) }
    let list = short.isEmpty ? "it has no sections" : "its sections are \(short.joined(separator: ", "))"
    throw .usage(
      "'\(feed)' has no section '\(word)'" + Spelling.suggestion(for: word, in: short, otherwise: "; \(list)"))
  }

  /// The shortest words that name each section. A number would be that of a section.
  func words(in feed: String) -> [String] {
    sections.indices.map { index in
      let short = SectionName.short(sections[index].name)
      return Int(short) == nil && (try? find(short, in: feed)) == index ? short : sections[index].name
    }
  }

  private func abbreviates(_ word: String, _ index: Int) -> Bool {
    let (name, key, text) = sections[index]
    if SectionName.names(word, name, key: key) || text == word { return true }
    // The section of the text after the name of its feed, if that is not named like it.
    guard let text, let slash = name.firstIndex(of: "/") else { return false }
    return word == "\(name[...slash])\(text)"
  }
}
