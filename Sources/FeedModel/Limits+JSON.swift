import FeedChange
import FeedJSON

extension Limits {
  /// Appends `"maxFrame":…,…`, all limits by name.
  public func appendMembers(to out: inout ByteBuffer) {
    for (place, limit) in Limits.all.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(limit.name)
      out.append(UInt8(ascii: ":"))
      out.append(integer: self[keyPath: limit.keyPath])
    }
  }

  /// Takes over the limits that an object names; others stay as they are.
  ///
  /// - Throws: `invalidParams` for a name that is no limit or a value out of its range.
  public mutating func take(_ object: JSONView) throws(FeedError) {
    for member in object.members {
      let name = member.key.string ?? ""
      guard let limit = Limits.all.first(where: { $0.name == name }) else {
        throw .invalidParams(member: "limits.\(name)", reason: "is no limit; see feedd --help")
      }
      guard let value = member.value.int, limit.range.contains(value) else {
        throw .invalidParams(
          member: "limits.\(name)",
          reason: "must be a whole number from \(limit.range.lowerBound) to \(limit.range.upperBound)")
      }
      self[keyPath: limit.keyPath] = value
    }
  }
}
