/// Options that stand together under one heading of the help.
public struct OptionGroup: Equatable, Sendable {
  public var title: String
  public var options: [OptionDescription]

  public init(_ title: String, _ options: [OptionDescription]) {
    self.title = title
    self.options = options
  }
}
