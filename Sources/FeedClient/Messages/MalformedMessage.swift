/// The daemon sent something that the protocol does not allow: it is not a feedd, or one of the two has a fault.
public struct MalformedMessage: Error, Equatable, Sendable {
  /// What was expected and where, for example "delta: `from` is not a revision".
  public var description: String

  public init(_ description: String) { self.description = description }
}

extension MalformedMessage: CustomStringConvertible {}
