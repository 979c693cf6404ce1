/// What applying a configuration did, by the names of feeds.
public struct ConfigurationChanges: Equatable, Sendable {
  public internal(set) var defined: [String] = []
  public internal(set) var redefined: [String] = []
  public internal(set) var undefined: [String] = []
  /// Feeds that the configuration before defined, and this one does not. They are there as before.
  public internal(set) var left: [String] = []

  public init() {}

  /// In words, for the log.
  public var text: String {
    let parts = [("defined", defined), ("redefined", redefined), ("undefined", undefined)]
    var texts = parts.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.joined(separator: ", "))" }
    if !left.isEmpty {
      texts.append("\(left.joined(separator: ", ")): no longer in the file, but kept with what is in it")
      texts.append("undefine what is not wanted any more")
    }
    return texts.isEmpty ? "no feed had to change" : texts.joined(separator: "; ")
  }
}
