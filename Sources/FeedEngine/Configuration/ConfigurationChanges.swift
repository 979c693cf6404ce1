/// What applying a configuration did, by the names of feeds.
public struct ConfigurationChanges: Equatable, Sendable {
  public internal(set) var defined: [String] = []
  public internal(set) var redefined: [String] = []
  public internal(set) var undefined: [String] = []

  public init() {}

  /// In words, for the log.
  public var text: String {
    let parts = [("defined", defined), ("redefined", redefined), ("undefined", undefined)]
    let texts = parts.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.joined(separator: ", "))" }
    return texts.isEmpty ? "no feed had to change" : texts.joined(separator: "; ")
  }
}
