import FeedJSON

extension ReferenceValue {
  /// The same value read through a view, by its public interface only.
  init?(_ view: JSONView) {
    switch view.kind {
    case .null: self = .null
    case .true: self = .bool(true)
    case .false: self = .bool(false)
    case .number: self = .number(String(decoding: view.text, as: UTF8.self))
    case .string:
      guard let bytes = view.withDecodedUTF8({ Array($0) }) else { return nil }
      self = .string(bytes)
    case .array:
      let elements = view.elements.compactMap { ReferenceValue($0) }
      guard elements.count == view.count else { return nil }
      self = .array(elements)
    case .object:
      let members = view.members.compactMap { ReferenceMember($0) }
      guard members.count == view.count else { return nil }
      self = .object(members)
    }
  }
}

extension ReferenceMember {
  init?(_ member: JSONView.Member) {
    guard let name = member.key.withDecodedUTF8({ Array($0) }), let value = ReferenceValue(member.value) else {
      return nil
    }
    self.init(name: name, value: value)
  }
}
