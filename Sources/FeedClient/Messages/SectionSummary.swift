/// A section's name and how many rows it has, as the daemon tells them when a watch starts.
public struct SectionSummary: Equatable, Sendable {
  public var name: String
  public var count: Int

  public init(name: String, count: Int) {
    self.name = name
    self.count = count
  }
}
