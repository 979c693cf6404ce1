import FeedJSON

/// Finds the members of an object that are shadowed by a later member of the same name. Queries use the last one.
///
/// Objects of up to `few` members are searched pair by pair without allocation, larger ones once with a hash table.
enum ShadowedMembers {
  static let few = 16

  /// Whether one of `later` has the name `key`.
  static func isShadowed(_ key: JSONView, by later: JSONView.Members) -> Bool {
    var later = later
    while let other = later.next() {
      if sameName(key, other.key) { return true }
    }
    return false
  }

  /// The number of shadowed members of `object`.
  static func count(in object: JSONView, _ evaluation: inout Evaluation) -> Int {
    evaluation.steps &-= object.count
    if object.count > few { return find(in: object, evaluation.pace).count }
    var count = 0
    var members = object.members
    while let member = members.next() {
      if isShadowed(member.key, by: members) { count &+= 1 }
    }
    return count
  }

  /// The offsets in the text (`byteOffset`) of the values of shadowed members. O(members).
  static func find(in object: JSONView, _ pace: Unmanaged<EvaluationPace>?) -> Set<Int> {
    var last: [MemberName: Int] = [:]
    last.reserveCapacity(object.count)
    var shadowed: Set<Int> = []
    for member in object.members {
      if let earlier = last.updateValue(member.value.byteOffset, forKey: MemberName(key: member.key)) {
        shadowed.insert(earlier)
      }
      pace?._withUnsafeGuaranteedRef { $0.spend(4) }
    }
    return shadowed
  }

  @inline(__always)
  private static func sameName(_ first: JSONView, _ second: JSONView) -> Bool {
    if !first.hasEscapes, !second.hasEscapes, first.text.count != second.text.count { return false }
    return first.compareString(second) == 0
  }
}

/// A member's name, hashed and compared by its decoded value.
private struct MemberName: Hashable {
  let key: JSONView

  static func == (left: MemberName, right: MemberName) -> Bool { left.key.compareString(right.key) == 0 }

  func hash(into hasher: inout Hasher) {
    _ = key.withDecodedUTF8 { hasher.combine(bytes: $0) }
  }
}
