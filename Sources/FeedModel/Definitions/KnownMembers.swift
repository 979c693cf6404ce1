import FeedChange
import FeedJSON

/// The members that the objects of a definition may have (Protocol/README.md, "Definitions").
///
/// A misspelt member must not be ignored: a bin without its filter accepts every element. New definitions are checked where
/// they arrive, in the configuration file and in requests. Reading a stored definition does not check it, because earlier
/// versions accepted unknown members.
public enum KnownMembers {
  public struct Unknown: Error {
    public let offset: Int
    /// The path of the member from the checked object, such as `bins[0].filtre`.
    public let path: String
    /// The next step; nil for a repeated member.
    public let advice: String?
  }

  /// Whether a second member of the same name is refused or, as everywhere in JSON requests, replaces the first.
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
  ) throws(Unknown) {
    guard object.kind == .object else { return }
    let given = object.member("kind")
    guard let kind = given == nil ? defaultKind : given?.string, let known = definition(kind) else { return }
    do throws(Unknown) {
      try check(object, known, others: others, at: "", repeats: repeats)
    } catch {
      throw Unknown(
        offset: error.offset, path: error.path, advice: error.advice.map { otherKinds(error.path, kind) ?? $0 })
    }
    if let retain = object.member("retain"), retain.kind == .object {
      try check(retain, retention, at: "retain.", repeats: repeats)
    }
    try check(sortOf: object, at: "", repeats: repeats)
    guard let bins = object.member("bins"), bins.kind == .array else { return }
    for (index, element) in bins.elements.enumerated() where element.kind == .object {
      try check(element, bin, at: "bins[\(index)].", repeats: repeats)
      try check(sortOf: element, at: "bins[\(index)].", repeats: repeats)
    }
  }

  private static func check(sortOf object: JSONView, at place: String, repeats: Repeats) throws(Unknown) {
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
  ) throws(Unknown) {
    var seen: Set<String> = []
    for member in object.members {
      let name = member.key.string ?? ""
      if known.contains(name) || others.contains(name) {
        if seen.insert(name).inserted || repeats == .allowed { continue }
        throw Unknown(offset: member.key.byteOffset, path: place + name, advice: nil)
      }
      let nearest = Spelling.nearest(to: name, in: known + others).map { "did you mean \"\($0)\"?" }
      throw Unknown(
        offset: member.key.byteOffset, path: place + name,
        advice: nearest ?? "use one of \(known.joined(separator: ", "))")
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
