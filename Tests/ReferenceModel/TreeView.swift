/// A row as the reference has it: what is shown, and which row it is.
struct TreeRow: Equatable {
  /// The same before and after an operation exactly when the row kept its identity.
  var token: UInt64
  var text: String
  /// The JSON text of its type, `null` without one.
  var type: String
  /// What filters judge and sorts compare; nil for a row of `$feeds`, which has none of its members.
  var element: TreeElement?

  static func == (a: TreeRow, b: TreeRow) -> Bool { a.shows(b) && a.token == b.token }

  func shows(_ other: TreeRow) -> Bool { text == other.text && type == other.type }
}

extension TreeRow {
  /// - Parameter type: the path of the type; nil for none.
  init(token: UInt64, _ element: TreeElement, type: String?) {
    self.init(token: token, text: element.text, type: element.type(at: type), element: element)
  }
}

/// A section as the reference has it.
struct TreeSection: Equatable {
  var name: String
  var rows: [TreeRow]
  /// The same before and after an operation exactly when it is the same section, which a provider shows through one child.
  var token: UInt64 = 0
}

/// Everything that a feed or bin shows.
struct TreeView: Equatable {
  /// Another one when the feed was undefined and defined again.
  var instance: UInt64
  var sections: [TreeSection]

  var rows: [TreeRow] { sections.flatMap(\.rows) }
}

/// Makes one token of several numbers.
func mix(_ numbers: UInt64...) -> UInt64 {
  var result: UInt64 = 0x9E37_79B9_7F4A_7C15
  for number in numbers {
    result ^= number
    result = (result ^ (result >> 30)) &* 0xBF58_476D_1CE4_E5B9
    result = (result ^ (result >> 27)) &* 0x94D0_49BB_1331_11EB
    result ^= result >> 31
  }
  return result
}
