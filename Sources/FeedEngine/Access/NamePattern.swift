/// A pattern of feed names: `*` stands for any letters, `?` for one, everything else for itself.
struct NamePattern: Equatable, Sendable {
  private let pattern: [UInt8]

  init(_ text: String) {
    pattern = Array(text.utf8)
  }

  /// Whether the pattern matches a feed's name; a bin's name, or that of its collection.
  func matches(feed name: String) -> Bool {
    let bytes = Array(name.utf8)
    if matches(bytes[...]) { return true }
    return bytes.firstIndex(of: UInt8(ascii: "/")).map { matches(bytes[..<$0]) } ?? false
  }

  /// O(pattern · name): only the last star is ever tried again.
  private func matches(_ name: ArraySlice<UInt8>) -> Bool {
    var (place, index) = (0, name.startIndex)
    var retry: (place: Int, index: Int)?
    while index < name.endIndex {
      if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
        retry = (place, index)
        place += 1
      } else if place < pattern.count, pattern[place] == UInt8(ascii: "?") || pattern[place] == name[index] {
        place += 1
        index += 1
      } else if let (star, from) = retry {
        retry = (star, from + 1)
        (place, index) = (star + 1, from + 1)
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
