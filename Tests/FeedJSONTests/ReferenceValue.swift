/// A value as the slow, plain reading of RFC 8259 gives it: what the scanner is compared with.
indirect enum ReferenceValue: Equatable {
  case null
  case bool(Bool)
  /// The digits as they stand.
  case number(String)
  /// The decoded bytes, surrogates that stand alone as in WTF-8.
  case string([UInt8])
  case array([ReferenceValue])
  case object([ReferenceMember])
}

/// A member of an object, name decoded.
struct ReferenceMember: Equatable {
  var name: [UInt8]
  var value: ReferenceValue
}

extension ReferenceValue {
  /// The same for all values that are equal as RFC 9535, section 2.3.5.2.2, says. Nil when a number is too large to be
  /// written out.
  var meaning: ReferenceValue? {
    switch self {
    case .number(let text): return ReferenceDecimal.reaches(text) ? .number(ReferenceDecimal(text).canonical) : nil
    case .array(let elements):
      let meanings = elements.compactMap(\.meaning)
      return meanings.count == elements.count ? .array(meanings) : nil
    case .object(let members):
      var last: [[UInt8]: ReferenceValue] = [:]
      for member in members {
        guard let meaning = member.value.meaning else { return nil }
        last[member.name] = meaning
      }
      let names = last.keys.sorted { $0.lexicographicallyPrecedes($1) }
      return .object(names.compactMap { name in last[name].map { ReferenceMember(name: name, value: $0) } })
    default: return self
    }
  }
}
