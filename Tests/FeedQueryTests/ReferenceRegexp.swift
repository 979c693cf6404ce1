@testable import FeedQuery

/// Matches a regular expression by computing all the places where it can end, straight from its syntax.
struct ReferenceRegexp {
  let text: [UInt32]

  init(_ text: String) {
    self.text = text.unicodeScalars.map(\.value)
  }

  func matchesWhole(_ syntax: RegexpSyntax) -> Bool { ends(syntax, from: 0).contains(text.count) }

  func matchesPart(_ syntax: RegexpSyntax) -> Bool { (0...text.count).contains { !ends(syntax, from: $0).isEmpty } }

  private func ends(_ syntax: RegexpSyntax, from start: Int) -> Set<Int> {
    switch syntax {
    case .set(let set):
      return start < text.count && set.ranges.contains { $0.contains(text[start]) } ? [start + 1] : []
    case .start: return start == 0 ? [start] : []
    case .end: return start == text.count ? [start] : []
    case .sequence(let parts):
      return parts.reduce([start]) { starts, part in
        Set(starts.flatMap { ends(part, from: $0) })
      }
    case .alternatives(let parts):
      return Set(parts.flatMap { ends($0, from: start) })
    case .repeated(let part, let min, let max):
      var (current, all): (Set<Int>, Set<Int>) = ([start], min == 0 ? [start] : [])
      var round = 1
      while round <= max ?? .max, !current.isEmpty {
        current = Set(current.flatMap { ends(part, from: $0) })
        if round >= min {
          // Places that were reached before lead nowhere new.
          current.subtract(all)
          all.formUnion(current)
        }
        round += 1
      }
      return all
    }
  }
}
