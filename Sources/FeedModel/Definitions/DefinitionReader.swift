import FeedChange
import FeedJSON
import FeedQuery

/// Reads the members of a definition. An error names the member and the expected value.
///
/// Each method returns nil, or its default, for an absent member. Strings that are too long are not decoded.
struct DefinitionReader {
  let object: JSONView
  /// The prefix of the members' names in errors, such as `bins[2].`; empty for the definition itself.
  let place: String

  func refuse(_ member: String, _ reason: String) -> FeedError {
    .invalidParams(member: place + member, reason: reason)
  }

  func string(_ member: StaticString) throws(FeedError) -> String? { try read(member, "must be a string", \.string) }

  /// Reads a member whose value `convert` converts; `rule` says which values it refuses with nil.
  private func read<Value>(
    _ member: StaticString, _ rule: String, _ convert: (JSONView) -> Value?
  ) throws(FeedError) -> Value? {
    guard let value = object.member(member) else { return nil }
    guard let converted = convert(value) else { throw refuse("\(member)", rule) }
    return converted
  }

  /// Reads a string of at most `limit` bytes of UTF-8.
  /// - Throws: `invalidParams` with `reason` for a longer string, which is not decoded.
  func string(
    _ member: StaticString, atMost limit: Int, else reason: @autoclosure () -> String
  ) throws(FeedError) -> String? {
    guard let value = object.member(member) else { return nil }
    guard value.kind == .string else { throw refuse("\(member)", "must be a string") }
    guard let string = value.string(atMost: limit) else { throw refuse("\(member)", reason()) }
    return string
  }

  func bool(_ member: StaticString, default fallback: Bool = false) throws(FeedError) -> Bool {
    try read(member, "must be true or false", \.bool) ?? fallback
  }

  func array(_ member: StaticString) throws(FeedError) -> JSONView? {
    try read(member, "must be an array") { $0.kind == .array ? $0 : nil }
  }

  /// Reads the name of a feed or a bin, which is required; see `FeedName`.
  func name(_ member: StaticString) throws(FeedError) -> String {
    let rule = "must be 1 to \(FeedName.maxLength) of the characters A-Z a-z 0-9 . _ -"
    guard let name = try string(member, atMost: FeedName.maxLength, else: rule) else {
      throw refuse("\(member)", "is missing; give it a name")
    }
    guard FeedName.isValid(name) else { throw refuse("\(member)", rule) }
    return name
  }

  /// Reads the text of a path or a filter, of at most `QueryLimits.textLength` bytes.
  private func query(_ member: StaticString) throws(FeedError) -> String? {
    guard let value = object.member(member), value.kind == .string else { return try string(member) }
    let limit = QueryLimits.textLength
    guard let text = value.string(atMost: limit) else {
      throw .badQuery(
        member: place + "\(member)", text: "", offset: limit,
        reason: "the text is longer than \(grouped(limit)) bytes; shorten it")
    }
    return text
  }

  /// Reads a singular path.
  /// - Throws: `badQuery` with the offset of the error.
  func singularPath(_ member: StaticString) throws(FeedError) -> SingularPath? {
    guard let text = try query(member) else { return nil }
    do { return try SingularPath(parsing: text) } catch { throw bad(member, text, error) }
  }

  private func bad(_ member: StaticString, _ text: String, _ error: QueryError) -> FeedError {
    .badQuery(member: place + "\(member)", text: text, offset: error.offset, reason: error.message)
  }

  /// Reads a filter.
  /// - Parameter size: the bytes that the filters before it in the definition take.
  /// - Throws: `badQuery` with the offset of the error, or `limitExceeded`.
  func filter(_ member: StaticString, besides size: Int = 0, _ limits: Limits) throws(FeedError) -> Filter? {
    guard let text = try query(member) else { return nil }
    do {
      return try Filter(parsing: text, atMost: limits.maxFilterBytes - size, ranges: limits.filterRanges)
    } catch {
      throw error.isTooLarge ? limits.tooLargeFilter("the filters of the definition take") : bad(member, text, error)
    }
  }

  func positiveInteger(_ member: StaticString) throws(FeedError) -> Int? {
    try read(member, "must be an integer above 0") { $0.int.flatMap { $0 > 0 ? $0 : nil } }
  }

  func positiveNumber(_ member: StaticString) throws(FeedError) -> Double? {
    try read(member, "must be a number above 0") { value in
      let number = value.kind == .number ? Double(String(decoding: value.text, as: UTF8.self)) : nil
      return number.flatMap { $0 > 0 && $0.isFinite ? $0 : nil }
    }
  }

  func integer(_ member: StaticString) throws(FeedError) -> Int? { try read(member, "must be an integer", \.int) }

  /// Reads an array of strings, such as names of types.
  func strings(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let array = try array(member) else { return nil }
    var strings: [String] = []
    for (index, element) in array.elements.enumerated() {
      guard let string = element.string else {
        throw refuse("\(member)[\(index)]", "must be a string")
      }
      strings.append(string)
    }
    return strings
  }

  /// Reads an array of names of feeds or bins; see `FeedName.isValidReference`.
  func feedNames(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let array = try array(member) else { return nil }
    var names: [String] = []
    for (index, element) in array.elements.enumerated() {
      guard element.kind == .string else { throw refuse("\(member)[\(index)]", "must be a string") }
      guard let name = element.string(atMost: FeedName.maxReferenceLength), FeedName.isValidReference(name) else {
        throw refuse("\(member)[\(index)]", "must name a feed, or a bin as collection/bin")
      }
      names.append(name)
    }
    return names
  }
}

/// The members that the objects of a definition may have (Protocol/README.md, "Definitions").
///
/// A misspelt member must not be ignored: a bin without its filter accepts every element. A lone surrogate would become U+FFFD,
/// so that different filters would be equal. Stored definitions are not checked, because earlier versions accepted both.
public enum KnownMembers {
  public struct Refusal: Error {
    /// The offset of the member's name in the text, in bytes.
    public let offset: Int
    /// The path of the member from the checked object, such as `bins[0].filtre`.
    public let path: String
    /// The next step for an unknown member; nil for a known one.
    public fileprivate(set) var advice: String?
    /// What is wrong with a known member.
    fileprivate var fault = "is given twice"

    public var reason: String { advice.map { "unknown member; \($0)" } ?? fault }
  }

  public static let loneSurrogate = "has a lone surrogate; give a string of Unicode characters"

  /// Whether a second member of the same name is refused or, as everywhere in JSON requests, replaces the first. A request may have no
  /// lone surrogates; a file that was in use stays valid.
  public enum Repeats {
    case refused
    case allowed
  }

  private static let common = ["feed", "kind", "selectable", "multiple", "editable", "movable"]
  private static let bin = ["name", "filter", "sort"]
  private static let sortTerm = ["by", "order"]
  private static let retention = ["count", "seconds", "until"]

  /// The members of a definition of that kind; nil for an unknown kind.
  static func definition(_ kind: String) -> [String]? {
    switch kind {
    case "collection": common + ["id", "type", "exclusive", "bins", "section", "sectionOrder", "retain"]
    case "array": common + ["id", "type", "retain"]
    case "single": common + ["type"]
    case "composed": common + ["children"]
    case "segmented": common + ["children", "current"]
    case "slots": common + ["contents", "pattern", "repeatables", "header", "default", "fixed", "types"]
    case "view": common + ["of", "filter", "sort", "offset", "limit"]
    case "managed": common + ["database", "query", "id", "section", "type"]
    default: nil
    }
  }

  /// Checks a definition and the objects in it. A definition of an unknown kind is left to its parser.
  /// - Parameters:
  ///   - others: the names of other members that the object may have.
  ///   - defaultKind: the kind of a definition that names none.
  public static func check(
    definition object: JSONView, others: [String] = [], defaultKind: String? = nil, repeats: Repeats
  ) throws(Refusal) {
    guard object.kind == .object else { return }
    let given = object.member("kind")
    guard let kind = given == nil ? defaultKind : given?.string, let known = definition(kind) else { return }
    do throws(Refusal) {
      try check(object, known, others: others, at: "", repeats: repeats)
    } catch {
      var refusal = error
      refusal.advice = error.advice.map { otherKinds(error.path, kind) ?? $0 }
      throw refusal
    }
    if let retain = object.member("retain"), retain.kind == .object {
      try check(retain, retention, at: "retain.", repeats: repeats)
    }
    try check(sortOf: object, at: "", repeats: repeats)
    if repeats == .allowed {
      try checkTypes(of: object)
      try checkPositions(of: object)
    }
    guard let bins = object.member("bins"), bins.kind == .array else { return }
    for (index, element) in bins.elements.enumerated() where element.kind == .object {
      try check(element, bin, at: "bins[\(index)].", repeats: repeats)
      try check(sortOf: element, at: "bins[\(index)].", repeats: repeats)
    }
  }

  /// Checks the names of types in a definition of slots; others have none.
  public static func checkTypes(of slots: JSONView) throws(Refusal) {
    guard slots.member("kind")?.stringEquals("slots") == true else { return }
    func check(_ type: JSONView, _ path: @autoclosure () -> String) throws(Refusal) {
      if type.hasLoneSurrogate { throw Refusal(offset: type.byteOffset, path: path(), fault: loneSurrogate) }
    }
    if let type = slots.member("default") { try check(type, "default") }
    for name: StaticString in ["pattern", "repeatables", "header"] {
      guard let list = slots.member(name), list.kind == .array else { continue }
      for (index, type) in list.elements.enumerated() { try check(type, "\(name)[\(index)]") }
    }
    if let contents = slots.member("contents"), contents.kind == .object {
      for member in contents.members { try check(member.key, "contents") }
    }
    if let fixed = slots.member("fixed"), fixed.kind == .object {
      for member in fixed.members { try check(member.value, "fixed.\(member.key.string(atMost: 64) ?? "")") }
    }
  }

  /// Checks that positions in a definition of slots are written alike: "01" and "1" would be the same one.
  private static func checkPositions(of slots: JSONView) throws(Refusal) {
    guard let fixed = slots.member("fixed"), fixed.kind == .object else { return }
    for member in fixed.members {
      guard let key = member.key.string(atMost: 64), let position = Int(key), "\(position)" != key else { continue }
      let fault = "must be a position without \"+\" and leading zeros: \"\(position)\""
      throw Refusal(offset: member.key.byteOffset, path: "fixed.\(key)", fault: fault)
    }
  }

  private static func check(sortOf object: JSONView, at place: String, repeats: Repeats) throws(Refusal) {
    guard let sort = object.member("sort"), sort.kind == .array else { return }
    for (term, element) in sort.elements.enumerated() where element.kind == .object {
      try check(element, sortTerm, at: place + "sort[\(term)].", repeats: repeats)
    }
  }

  /// Checks one object.
  /// - Parameters:
  ///   - others: members that are accepted too, but that the advice lists only for a similar name.
  ///   - place: the prefix of the members' paths, such as `bins[2].`.
  public static func check(
    _ object: JSONView, _ known: [String], others: [String] = [], at place: String, repeats: Repeats
  ) throws(Refusal) {
    var seen: Set<String> = []
    for member in object.members {
      let name = member.key.string ?? ""
      var refusal = Refusal(offset: member.key.byteOffset, path: place + name)
      if known.contains(name) || others.contains(name) {
        if repeats == .allowed && member.value.hasLoneSurrogate && !others.contains(name) {
          refusal.fault = loneSurrogate
        } else if seen.insert(name).inserted || repeats == .allowed {
          continue
        }
        throw refusal
      }
      let nearest = Spelling.nearest(to: name, in: known + others).map { "did you mean \"\($0)\"?" }
      refusal.advice = nearest ?? "use one of \(known.joined(separator: ", "))"
      throw refusal
    }
  }

  /// The advice for a member that only definitions of other kinds have; nil if none has it.
  private static func otherKinds(_ name: String, _ kind: String) -> String? {
    let kinds = FeedDefinition.kinds.filter { definition($0)?.contains(name) == true }
    guard let last = kinds.last else { return nil }
    let owners =
      kinds.count == 1 ? "only \(last) has it" : "\(kinds.dropLast().joined(separator: ", ")) and \(last) have it"
    return "kind \"\(kind)\" has no \"\(name)\"; \(owners)"
  }
}

/// A text that is compared and hashed by its bytes, as strings of JSON are (Protocol/README.md, "Messages").
///
/// `String` takes canonically equivalent texts for equal, such as "é" in one and in two code points.
package struct ExactText: Hashable, Sendable {
  let string: String

  init(_ string: String) { self.string = string }

  package static func == (a: ExactText, b: ExactText) -> Bool {
    var (a, b) = (a.string, b.string)
    return a.withUTF8 { a in
      b.withUTF8 { RowStore.equal(UnsafeRawBufferPointer(a), UnsafeRawBufferPointer($0)) }
    }
  }

  package func hash(into hasher: inout Hasher) {
    var string = string
    string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension String {
  package var exact: ExactText { ExactText(self) }
}

extension SingularPath: Equatable {
  public static func == (a: SingularPath, b: SingularPath) -> Bool { a.text.exact == b.text.exact }
}

extension Filter: Equatable {
  public static func == (a: Filter, b: Filter) -> Bool { a.text.exact == b.text.exact }
}
