import FeedChange
import FeedJSON

/// A `snapshot` notification: consecutive rows of a feed (`Protocol/README.md`, "Watching").
public struct SnapshotPart: Equatable, Sendable {
  public var feed: String
  public var revision: UInt64
  /// The place of the first element. Elements beyond the end of a section continue in the next one.
  public var at: IndexPath
  /// The compact JSON texts of the elements.
  public var elements: [[UInt8]]
  /// The type of each of the elements; nil if rows have no types.
  public var types: [String?]?
  /// Whether this is the last part.
  public var isLast: Bool
  /// The sections of a snapshot that resets the watch, in its first part; otherwise nil.
  public var resetSections: [SectionSummary]?

  public init(
    feed: String, revision: UInt64, at: IndexPath, elements: [[UInt8]], types: [String?]? = nil, isLast: Bool,
    resetSections: [SectionSummary]? = nil
  ) {
    self.feed = feed
    self.revision = revision
    self.at = at
    self.elements = elements
    self.types = types
    self.isLast = isLast
    self.resetSections = resetSections
  }

  /// Reads the `params` of the notification. O(bytes).
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "snapshot")
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    at = try reader.path("at")
    elements = try reader.texts("elements")
    types = try reader.types(count: elements.count)
    isLast = reader.flag("last")
    resetSections = reader.flag("reset") ? try reader.sections("sections") : nil
  }
}
