/// Why a test's machinery could not do its part.
public struct TestFailure: Error, CustomStringConvertible {
  public var description: String

  public init(_ description: String) { self.description = description }
}
