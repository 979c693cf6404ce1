import FeedJSON

extension JSONKind {
  /// The kind with its article, for error messages.
  var name: String {
    switch self {
    case .null: "null"
    case .false, .true: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
