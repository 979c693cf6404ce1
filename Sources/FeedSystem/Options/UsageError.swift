/// A command line that cannot be carried out: which word is wrong and what is expected instead.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A sentence without the program's name and without the full stop.
  public var message: String

  public init(_ message: String) { self.message = message }

  public var description: String { message }
}
