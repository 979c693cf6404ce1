/// JSON Merge Patch (RFC 7396) on texts.
///
/// Members of the target keep their order. A member that the patch does not name keeps its text to the digit. New members
/// follow in the order of the patch.
///
///     MergePatch.apply(patch, to: target, into: &out)   // {"a":1.0,"b":2} with {"b":3} is {"a":1.0,"b":3}
public enum MergePatch {
  /// Appends the merged value, without white space outside strings. O(bytes of both).
  ///
  /// Of several members with one name the last counts, in the target and in the patch. A name that the patch contains occurs
  /// at most once in the result, where its last member was.
  /// - Parameter step: called after each 64 members.
  public static func apply(_ patch: JSONView, to target: JSONView?, into out: inout ByteBuffer, step: () -> Void = {}) {
    guard patch.kind == .object else { return out.append(compact: patch) }
    var changes = Changes(patch, step)
    out.append(UInt8(ascii: "{"))
    var isFirst = true
    if let target, target.kind == .object {
      changes.findPlaces(in: target, step)
      for (place, member) in target.members.enumerated() {
        if place & 63 == 63 { step() }
        guard let change = changes[member.key] else {
          begin(member.key, &isFirst, &out)
          out.append(compact: member.value)
          continue
        }
        if changes.lastPlace(change) != place || changes.value(change).isNull { continue }
        begin(member.key, &isFirst, &out)
        apply(changes.value(change), to: member.value, into: &out, step: step)
      }
    }
    changes.forEachNew { member in
      begin(member.key, &isFirst, &out)
      apply(member.value, to: nil, into: &out, step: step)
    }
    out.append(UInt8(ascii: "}"))
  }

  private static func begin(_ key: JSONView, _ isFirst: inout Bool, _ out: inout ByteBuffer) {
    if isFirst { isFirst = false } else { out.append(UInt8(ascii: ",")) }
    out.append(key.text)
    out.append(UInt8(ascii: ":"))
  }

  /// The members of a patch by name; of equal names the last.
  private struct Changes {
    private var members: [JSONView.Member] = []
    /// The place of the last member of that name in the target; nil if there is none.
    private var places: [Int?] = []
    private var indices: [[UInt8]: Int] = [:]

    init(_ patch: JSONView, _ step: () -> Void) {
      for (place, member) in patch.members.enumerated() {
        if place & 63 == 63 { step() }
        let name = Self.name(member.key)
        if let index = indices[name] {
          members[index] = member
        } else {
          indices[name] = members.count
          members.append(member)
          places.append(nil)
        }
      }
    }

    private static func name(_ key: JSONView) -> [UInt8] { key.withDecodedUTF8 { Array($0) } ?? [] }
    subscript(key: JSONView) -> Int? { indices[Self.name(key)] }
    func value(_ change: Int) -> JSONView { members[change].value }
    func lastPlace(_ change: Int) -> Int? { places[change] }

    mutating func findPlaces(in target: JSONView, _ step: () -> Void) {
      for (place, member) in target.members.enumerated() {
        if place & 63 == 63 { step() }
        if let change = self[member.key] { places[change] = place }
      }
    }

    /// Calls `body` with the members that the target does not have and that are not null.
    func forEachNew(_ body: (JSONView.Member) -> Void) {
      for (member, place) in zip(members, places) where place == nil && !member.value.isNull { body(member) }
    }
  }
}
