import FeedJSON

/// The children of a node: the elements of an array, or the values of an object's members, of each name the last.
struct NodeChildren {
  private enum Place {
    case elements(JSONView.Elements)
    case members(JSONView.Members)
  }

  private var place: Place
  /// Few enough members to look for a later one of the same name each time.
  private let isSmall: Bool

  init(_ node: JSONView) {
    place = node.kind == .array ? .elements(node.elements) : .members(node.members)
    isSmall = node.count <= ShadowedMembers.few
  }

  /// The next child; `notes` tells which members of a large object are hidden.
  mutating func next(_ notes: Unmanaged<FrameNotes>?) -> JSONView? {
    switch place {
    case .elements(var elements):
      let child = elements.next()
      place = .elements(elements)
      return child
    case .members(var members):
      defer { place = .members(members) }
      while let member = members.next() {
        if isSmall {
          if !ShadowedMembers.isShadowed(member.key, by: members) { return member.value }
        } else if let notes, notes.takeUnretainedValue().shadowed.contains(member.value.byteOffset) {
          continue
        } else {
          return member.value
        }
      }
      return nil
    }
  }
}

/// What a frame needs to remember in rare cases.
final class FrameNotes {
  /// Selected elements that are still to be given, the last one first.
  var rows: [JSONView] = []
  /// The places of the values that a later member of the same name hides.
  let shadowed: Set<Int>

  init(shadowed: Set<Int> = []) {
    self.shadowed = shadowed
  }
}
