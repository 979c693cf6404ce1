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
    changes.forEachNew(step) { member in
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
  ///
  /// Its memory is allocated at once, for all members, and owns no names: a dictionary of many names takes long to grow and to be
  /// freed, without a step in between.
  private struct Changes {
    private var members: [JSONView.Member] = []
    /// The place of the last member of that name in the target; nil if there is none.
    private var places: [Int?] = []
    /// A hash table of the indices of members by name, with linear probing; `free` in at least half of the slots.
    private var slots: [Int32]
    private static let free: Int32 = -1

    init(_ patch: JSONView, _ step: () -> Void) {
      let count = patch.count
      members.reserveCapacity(count)
      places.reserveCapacity(count)
      // Texts are shorter than 4 GiB, and a member has at least five bytes.
      slots = [Int32](repeating: Self.free, count: 2 << (Int.bitWidth - count.leadingZeroBitCount))
      for (place, member) in patch.members.enumerated() {
        if place & 63 == 63 { step() }
        let slot = slot(of: member.key)
        if slots[slot] != Self.free {
          members[Int(slots[slot])] = member
        } else {
          slots[slot] = Int32(members.count)
          members.append(member)
          places.append(nil)
        }
      }
    }

    /// The slot of the member with a name, or the free one where it belongs.
    private func slot(of key: JSONView) -> Int {
      var hasher = Hasher()
      _ = key.withDecodedUTF8 { hasher.combine(bytes: $0) }
      var slot = hasher.finalize() & (slots.count - 1)
      while slots[slot] != Self.free, members[Int(slots[slot])].key.compareString(key) != 0 {
        slot = (slot + 1) & (slots.count - 1)
      }
      return slot
    }

    subscript(key: JSONView) -> Int? {
      let index = slots[slot(of: key)]
      return index == Self.free ? nil : Int(index)
    }
    func value(_ change: Int) -> JSONView { members[change].value }
    func lastPlace(_ change: Int) -> Int? { places[change] }

    mutating func findPlaces(in target: JSONView, _ step: () -> Void) {
      for (place, member) in target.members.enumerated() {
        if place & 63 == 63 { step() }
        if let change = self[member.key] { places[change] = place }
      }
    }

    /// Calls `body` with the members that the target does not have and that are not null.
    func forEachNew(_ step: () -> Void, _ body: (JSONView.Member) -> Void) {
      for (index, member) in members.enumerated() {
        if index & 63 == 63 { step() }
        if places[index] == nil && !member.value.isNull { body(member) }
      }
    }
  }
}
