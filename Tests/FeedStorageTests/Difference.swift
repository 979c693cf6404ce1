/// Describes the first difference between two lists of lines; nil if they are equal.
func difference(_ a: [String], _ b: [String]) -> String? {
  for (place, (left, right)) in zip(a, b).enumerated() where left != right {
    let common = zip(left.utf8, right.utf8).prefix { $0 == $1 }.count
    let start = max(0, common - 60)
    func part(_ text: String) -> String { String(decoding: text.utf8.dropFirst(start).prefix(160), as: UTF8.self) }
    return "line \(place) (\(left.prefix(30))) at \(common): …\(part(left))… and …\(part(right))…"
  }
  return a.count == b.count ? nil : "\(a.count) and \(b.count) lines"
}
