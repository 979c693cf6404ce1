/// Random mutations, valid and invalid.
extension World {
  /// Returns a method and its parameters.
  func mutation() -> (method: String, params: String) {
    switch below(100) {
    case ..<10: transaction()
    case ..<14: definition()
    case ..<15: ("undefine", #"{"feed":"\#(pick(["c", "a", "s", "h", "g", "m", "top", "c/x", "no"]))"}"#)
    default: operation()
    }
  }

  /// Returns a mutation of rows or children.
  private func operation() -> (method: String, params: String) {
    switch below(20) {
    case ..<11: collection()
    case ..<15: array()
    case ..<16: ("put", #"{"feed":"s","element":\#(chance(30) ? "null" : element())}"#)
    default: provider()
    }
  }

  private func transaction() -> (method: String, params: String) {
    let ops = (0..<below(5)).map { _ -> String in
      let (method, params) = chance(6) ? definition() : operation()
      return #"{"method":"\#(method)","params":\#(params)}"#
    }
    return ("transaction", #"{"ops":[\#(ops.joined(separator: ","))]}"#)
  }

  private func definition() -> (method: String, params: String) {
    let text = pick([pick(Palette.collections), pick(Palette.composed), pick(Palette.segmented), pick(Palette.slots)])
    return ("define", chance(80) ? #"{"replace":true,"# + text.dropFirst() : pick(Self.definitions).text)
  }

  private func collection() -> (method: String, params: String) {
    switch below(20) {
    case ..<9: ("update", #"{"feed":"c","element":\#(element())}"#)
    case ..<13: ("update", #"{"feed":"c","elements":[\#(elements(5))]}"#)
    case ..<17:
      ("delete", #"{"feed":"c","ids":[\#((0..<below(3)).map { _ in "\(below(identities))" }.joined(separator: ","))]}"#)
    case ..<18: ("delete", #"{"feed":"c","id":\#(chance(90) ? "\(below(identities))" : "[]")}"#)
    default: ("set", #"{"feed":"c","elements":[\#(elements(9))]}"#)
    }
  }

  private func array() -> (method: String, params: String) {
    let count = contents()["a"]?.first?.count ?? 0
    let row = { self.below(count + (self.chance(5) ? 2 : 1)) }
    switch below(10) {
    case ..<4:
      let number = below(4)
      let rows = (0..<number).map { _ in "\(row())" }.joined(separator: ",")
      let elements = (0..<number).map { _ in element() }.joined(separator: ",")
      return ("insert", #"{"feed":"a","elements":[\#(elements)],"at":[\#(rows)]}"#)
    case 4: return ("insert", #"{"feed":"a","elements":[\#(elements(3))],"animation":"fade"}"#)
    case ..<7:
      let rows = Set((0..<below(4)).map { _ in row() }).map { "\($0)" }.joined(separator: ",")
      return ("remove", #"{"feed":"a","at":[\#(rows)]}"#)
    case 7: return ("replace", #"{"feed":"a","elements":[\#(element())],"at":[\#(row())]}"#)
    case 8: return ("move", #"{"feed":"a","from":\#(row()),"to":\#(row())}"#)
    default: return ("set", #"{"feed":"a","elements":[\#(elements(6))]}"#)
    }
  }

  private func provider() -> (method: String, params: String) {
    let (feed, child) = (pick(["h", "g", "top"]), pick(["c", "a", "s", "c/x", "c/y", "h", "g", "m"]))
    switch below(6) {
    case ..<3: return ("activate", #"{"feed":"g","child":\#(below(5) - 1)}"#)
    case 3: return ("insertChild", #"{"feed":"\#(feed)","child":"\#(child)","at":\#(below(3))}"#)
    case 4: return ("removeChild", #"{"feed":"\#(feed)","at":\#(below(3))}"#)
    default: return ("removeChild", #"{"feed":"\#(feed)","child":"\#(child)"}"#)
    }
  }

  private func elements(_ most: Int) -> String {
    (0..<below(most + 1)).map { _ in element() }.joined(separator: ",")
  }

  /// Returns an element: sometimes a large one, sometimes one without identity.
  func element(id: Int? = nil) -> String {
    if id == nil && chance(1) { return #"{"v":1}"# }
    let space = chance(20) ? " " : ""
    let filler = String(repeating: "f", count: chance(4) ? 1200 : below(4))
    let type = chance(70) ? #","k":"\#(pick(["p", "q"]))""# : ""
    let members = #""v":\#(below(6)),"w":\#(chance(50))\#(type),"f":"\#(filler)""#
    return #"{"id":\#(id ?? below(identities)),\#(space)\#(members)}"#
  }
}
