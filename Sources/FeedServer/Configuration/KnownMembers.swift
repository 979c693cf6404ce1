import FeedEngine
import FeedJSON
import FeedSystem

/// The members that the objects of a configuration may have. Unknown members are ignored on the wire and refused in a file.
enum KnownMembers {
  static let file = ["feeds", "limits", "access"]
  static let rule = ["uid", "user", "gid", "group", "feeds", "allow"]
  private static let common = ["feed", "kind", "selectable", "multiple", "editable", "movable"]
  private static let bin = ["name", "filter", "sort"]
  private static let sortTerm = ["by", "order"]
  private static let retention = ["count", "seconds"]

  /// The members of a definition of that kind; nil for an unknown kind.
  private static func definition(_ kind: String) -> [String]? {
    switch kind {
    case "collection": common + ["id", "type", "exclusive", "bins", "retain"]
    case "array", "single": common + ["type"]
    case "composed": common + ["children"]
    case "segmented": common + ["children", "current"]
    case "slots": common + ["contents", "pattern", "repeatables", "header", "default", "fixed"]
    case "managed": common + ["database", "query", "id", "section", "type"]
    default: nil
    }
  }

  /// Refuses members of an object that stand in no list.
  static func check(
    _ object: JSONView, _ known: [String], _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    var seen: Set<String> = []
    for member in object.members {
      let name = member.key.string ?? ""
      let path = place.isEmpty ? name : "\(place).\(name)"
      guard known.contains(name) else {
        let advice = Spelling.nearest(to: name, in: known).map { "did you mean \"\($0)\"?" }
        throw text.error(
          at: member.key, path, "unknown member; \(advice ?? "use one of \(known.joined(separator: ", "))")")
      }
      guard seen.insert(name).inserted else { throw text.error(at: member.key, path, "is given twice") }
    }
  }

  /// The same for a definition with all that is in it.
  static func check(
    definition object: JSONView, _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    guard object.kind == .object, let kind = object.member("kind")?.string, let known = definition(kind) else { return }
    try check(object, known, place, text)
    if let retain = object.member("retain"), retain.kind == .object {
      try check(retain, retention, "\(place).retain", text)
    }
    guard let bins = object.member("bins"), bins.kind == .array else { return }
    for (index, element) in bins.elements.enumerated() where element.kind == .object {
      try check(element, bin, "\(place).bins[\(index)]", text)
      guard let sort = element.member("sort"), sort.kind == .array else { continue }
      for (term, element) in sort.elements.enumerated() where element.kind == .object {
        try check(element, sortTerm, "\(place).bins[\(index)].sort[\(term)]", text)
      }
    }
  }
}
