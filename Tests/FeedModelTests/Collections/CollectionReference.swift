import FeedJSON
import FeedQuery

@testable import FeedModel

/// A collection as the protocol words it, in plain arrays: every operation looks at everything (DESIGN section 2, PROTOCOL
/// sections 4 to 6).
struct CollectionReference {
  struct Element: Equatable {
    let identity: String
    var text: String
    /// Tells elements apart that come one after another under one identity.
    var birth: Int
    /// Counts up with every change of any element.
    var change: Int
    var at: UInt64
  }

  /// A row of a bin: which element, and since when it stands in this bin without having left it.
  struct Row: Equatable {
    var birth: Int
    var entry: Int
  }

  var rules: CollectionRules
  /// In the order of arrival.
  var elements: [Element] = []
  var bins: [[Row]]
  private var clock = 0

  init(_ rules: CollectionRules) {
    self.rules = rules
    bins = rules.bins.map { _ in [] }
  }

  /// An element that the rules refuse: the operation must change nothing.
  struct Refused: Error {}

  private mutating func tick() -> Int {
    clock += 1
    return clock
  }

  func element(_ birth: Int) -> Element { elements.first { $0.birth == birth }! }

  mutating func update(_ given: String, at now: UInt64) throws {
    let text = compact(given)
    let identity = try rules.identity(of: text)
    let known = elements.firstIndex { $0.identity == identity }
    if let known, elements[known].text == text { return }
    let verdicts = rules.verdicts(on: text)
    guard verdicts.contains(true) else {
      if let known { remove(elements[known].birth) }
      return
    }
    guard let known else {
      let element = Element(identity: identity, text: text, birth: tick(), change: tick(), at: now)
      elements.append(element)
      for bin in bins.indices where verdicts[bin] { insert(Row(birth: element.birth, entry: tick()), text, bin) }
      return
    }
    let (old, birth) = (elements[known].text, elements[known].birth)
    elements[known].text = text
    elements[known].change = tick()
    elements[known].at = now
    for bin in bins.indices {
      let row = bins[bin].firstIndex { $0.birth == birth }
      switch (row, verdicts[bin]) {
      case (nil, true): insert(Row(birth: birth, entry: tick()), text, bin)
      case (let row?, false): bins[bin].remove(at: row)
      case (let row?, true):
        if rules.bins[bin].compare(old, text) != 0 { insert(bins[bin].remove(at: row), text, bin) }
      case (nil, false): break
      }
    }
  }

  private mutating func insert(_ row: Row, _ text: String, _ bin: Int) {
    let place = bins[bin].firstIndex { rules.bins[bin].compare(element($0.birth).text, text) > 0 }
    bins[bin].insert(row, at: rules.bins[bin].sort.isEmpty ? bins[bin].count : place ?? bins[bin].count)
  }

  private mutating func remove(_ birth: Int) {
    elements.removeAll { $0.birth == birth }
    for bin in bins.indices { bins[bin].removeAll { $0.birth == birth } }
  }

  mutating func delete(_ id: String) throws {
    let identity = try CollectionRules.identity(id)
    if let known = elements.first(where: { $0.identity == identity }) { remove(known.birth) }
  }

  mutating func set(_ texts: [String], at now: UInt64) throws {
    let wanted = Set(try texts.map { try rules.identity(of: $0) })
    for element in elements where !wanted.contains(element.identity) { remove(element.birth) }
    for text in texts { try update(text, at: now) }
  }

  /// Those that changed longest ago go until no more than `retain.count` are left.
  mutating func evict() {
    guard let most = rules.retainCount else { return }
    while elements.count > most { remove(byChange[0].birth) }
  }

  mutating func evictExpired(at now: UInt64) {
    guard let seconds = rules.retainSeconds else { return }
    for element in elements where element.at + UInt64(seconds) * 1_000_000_000 <= now { remove(element.birth) }
  }

  /// The elements, longest unchanged first.
  var byChange: [Element] { elements.sorted { $0.change < $1.change } }

  /// The same elements pushed anew, in the order in which they arrived, under other rules.
  mutating func redefine(_ rules: CollectionRules) throws {
    if rules.definition == self.rules.definition { return }
    var fresh = CollectionReference(rules)
    fresh.clock = clock
    var names: [Int: Element] = [:]
    for element in elements {
      try fresh.update(element.text, at: element.at)
      let identity = try rules.identity(of: element.text)
      if let place = fresh.elements.firstIndex(where: { $0.identity == identity }) {
        names[fresh.elements[place].birth] = element
      }
    }
    fresh.keepHistory(names, entries: self)
    fresh.evict()
    self = fresh
  }

  /// Gives every element the birth and the last change of the one it was made of, and every row its entry if its bin had it.
  private mutating func keepHistory(_ names: [Int: Element], entries old: CollectionReference) {
    for bin in bins.indices {
      let before = old.rules.bins.firstIndex { $0.name == rules.bins[bin].name }
      for row in bins[bin].indices {
        let birth = names[bins[bin][row].birth]!.birth
        let known = before.flatMap { old.bins[$0].first { $0.birth == birth } }
        bins[bin][row] = known ?? Row(birth: birth, entry: bins[bin][row].entry)
      }
    }
    for place in elements.indices {
      let source = names[elements[place].birth]!
      (elements[place].birth, elements[place].change, elements[place].at) = (source.birth, source.change, source.at)
    }
  }
}

/// The text without white space outside strings.
func compact(_ text: String) -> String {
  var inside = false
  var escaped = false
  return text.filter { character in
    if escaped {
      escaped = false
    } else if inside && character == "\\" {
      escaped = true
    } else if character == "\"" {
      inside.toggle()
    }
    return inside || !character.isWhitespace
  }
}
