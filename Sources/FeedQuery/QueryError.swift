/// Why the text of a path, a filter or a regular expression was refused.
public struct QueryError: Error, Equatable, Sendable {
  /// Where the trouble is: bytes of UTF-8 from the start of the text, from 0 to its length.
  public let offset: Int
  /// What is wrong there and what to change, one sentence.
  public let message: String

  public init(offset: Int, message: String) {
    self.offset = offset
    self.message = message
  }
}

extension QueryError: CustomStringConvertible {
  public var description: String { "at byte \(offset): \(message)" }
}
