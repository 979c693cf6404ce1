import FeedQuery

/// A text that is compared and hashed by its bytes, as strings of JSON are (Protocol/README.md, "Messages").
///
/// `String` takes canonically equivalent texts for equal, such as "é" in one and in two code points.
package struct ExactText: Hashable, Sendable {
  let string: String

  init(_ string: String) { self.string = string }

  package static func == (a: ExactText, b: ExactText) -> Bool {
    var (a, b) = (a.string, b.string)
    return a.withUTF8 { a in
      b.withUTF8 { RowStore.equal(UnsafeRawBufferPointer(a), UnsafeRawBufferPointer($0)) }
    }
  }

  package func hash(into hasher: inout Hasher) {
    var string = string
    string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension String {
  package var exact: ExactText { ExactText(self) }
}

extension SingularPath {
  var exact: ExactText { ExactText(text) }
}

extension Filter {
  var exact: ExactText { ExactText(text) }
}
