import FeedClient
import FeedJSON

/// An object's members with those of the objects inside it, named by their path.
enum Flattening {
  /// Deeper objects stay values.
  private static let maxDepth = 8

  static func entries(of object: JSONView) -> [(name: String, value: JSONView)] {
    var entries: [(name: String, value: JSONView)] = []
    add(object, prefix: "", depth: 0, to: &entries)
    return entries
  }

  private static func add(
    _ object: JSONView, prefix: String, depth: Int, to entries: inout [(name: String, value: JSONView)]
  ) {
    for member in object.members {
      let name = prefix + (member.key.string ?? "")
      if member.value.kind == .object, member.value.count > 0, depth < maxDepth {
        add(member.value, prefix: name + ".", depth: depth + 1, to: &entries)
      } else {
        entries.append((name, member.value))
      }
    }
  }
}
