import FeedModel

/// What the file of `--config` asks for: feeds, limits, and who may do what.
///
/// It is read without the daemon's state; whether it fits that is seen when it is applied.
public struct Configuration: Sendable {
  /// One definition of the file.
  struct Entry: Sendable {
    let definition: FeedDefinition
    let place: ConfigurationError.Place
  }

  /// The definitions in an order in which each follows those it shows.
  let entries: [Entry]
  /// The limits that the file sets, by name.
  public let limits: [String: Int]
  /// Who may do what; nil when the file says nothing about it and everybody may do everything.
  public let access: AccessRules?

  /// How many feeds it defines.
  public var feedCount: Int { entries.count }

  init(entries: [Entry], limits: [String: Int], access: AccessRules?) {
    self.entries = entries
    self.limits = limits
    self.access = access
  }
}
