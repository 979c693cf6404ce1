import FeedJSON
import FeedQuery

@testable import FeedModel

/// A simple collection in arrays: every operation visits every element. The rules are those of
/// `Protocol/README.md`, "The change" and "Collections".
struct CollectionReference {
  struct Element: Equatable {
    let identity: String
    var text: String
    /// Distinguishes successive elements of one identity.
    var birth: Int
    /// Incremented with every change of any element.
    var change: Int
    var at: UInt64
  }

  var rules: CollectionRules
  /// The elements in the order of arrival.
  var elements: [Element] = []
  /// The births of the elements in each bin.
  var bins: [[Int]]
  private var clock = 0
  /// The births of the identities that existed when the operation or its commit began. An element that returns under one of
  /// them is the same element.
  private var remembered: [String: Int] = [:]

  init(_ rules: CollectionRules) {
    self.rules = rules
    bins = rules.bins.map { _ in [] }
  }

  /// The rules refuse an element, so the operation must change nothing.
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
      let birth = remembered[identity] ?? tick()
      let element = Element(identity: identity, text: text, birth: birth, change: tick(), at: now)
      elements.append(element)
      for bin in bins.indices where verdicts[bin] { insert(element.birth, text, bin) }
      return
    }
    let (old, birth) = (elements[known].text, elements[known].birth)
    elements[known].text = text
    elements[known].change = tick()
    elements[known].at = now
    for bin in bins.indices {
      let row = bins[bin].firstIndex(of: birth)
      switch (row, verdicts[bin]) {
      case (nil, true): insert(birth, text, bin)
      case (let row?, false): bins[bin].remove(at: row)
      case (let row?, true):
        if rules.bins[bin].compare(old, text) != 0 { insert(bins[bin].remove(at: row), text, bin) }
      case (nil, false): break
      }
    }
  }

  /// Begins an operation, the first of its commit or a later one.
  mutating func begin(isFirst: Bool) {
    if isFirst { remembered = [:] }
    for element in elements { remembered[element.identity] = element.birth }
  }

  private mutating func insert(_ birth: Int, _ text: String, _ bin: Int) {
    let place = bins[bin].firstIndex { rules.bins[bin].compare(element($0).text, text) > 0 }
    bins[bin].insert(birth, at: rules.bins[bin].sort.isEmpty ? bins[bin].count : place ?? bins[bin].count)
  }

  private mutating func remove(_ birth: Int) {
    elements.removeAll { $0.birth == birth }
    for bin in bins.indices { bins[bin].removeAll { $0 == birth } }
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

  /// Removes the least recently changed elements until at most `retain.count` are left.
  mutating func evict() {
    guard let most = rules.retainCount else { return }
    while elements.count > most { remove(byChange[0].birth) }
  }

  mutating func evictExpired(at now: UInt64) {
    guard let seconds = rules.retainSeconds else { return }
    for element in elements where element.at + UInt64(seconds) * 1_000_000_000 <= now { remove(element.birth) }
  }

  /// The elements, least recently changed first.
  var byChange: [Element] { elements.sorted { $0.change < $1.change } }

  /// Inserts the same elements again, in the order of arrival, under other rules.
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
    fresh.keepHistory(names)
    fresh.evict()
    self = fresh
  }

  /// Gives every element the birth and the last change of its original.
  private mutating func keepHistory(_ names: [Int: Element]) {
    for bin in bins.indices { bins[bin] = bins[bin].map { names[$0]!.birth } }
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
