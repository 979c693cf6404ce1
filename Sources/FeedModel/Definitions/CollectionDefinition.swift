import FeedQuery

/// What a `collection` feed is made of: where identity stands, which bins there are, what is kept (PROTOCOL section 6).
public struct CollectionDefinition: Equatable, Sendable {
  /// One bin: the elements a filter accepts, in an order.
  public struct Bin: Equatable, Sendable {
    public let name: String
    /// Absent: every element is accepted.
    public let filter: Filter?
    /// Empty: order of arrival.
    public let sort: [SortTerm]

    public static func == (a: Bin, b: Bin) -> Bool {
      a.name == b.name && a.filter?.text == b.filter?.text && a.sort == b.sort
    }
  }

  /// One term of a sort: a singular query and a direction.
  public struct SortTerm: Equatable, Sendable {
    public let by: SingularPath
    public let descending: Bool

    public static func == (a: SortTerm, b: SortTerm) -> Bool {
      a.by.text == b.by.text && a.descending == b.descending
    }
  }

  /// Bounds on what is kept; elements unchanged for longest go first.
  public struct Retention: Equatable, Sendable {
    public let count: Int?
    public let seconds: Double?
  }

  public let id: SingularPath
  public let type: SingularPath?
  /// Whether an element sits only in the first bin that accepts it.
  public let exclusive: Bool
  public let bins: [Bin]
  public let retain: Retention?

  public static func == (a: CollectionDefinition, b: CollectionDefinition) -> Bool {
    a.id.text == b.id.text && a.type?.text == b.type?.text && a.exclusive == b.exclusive && a.bins == b.bins
      && a.retain == b.retain
  }
}
