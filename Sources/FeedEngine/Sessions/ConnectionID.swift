/// Names a connection between the server and the engine, from `connect` until `disconnect`; then it may name another.
public struct ConnectionID: Hashable, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }
}
