/// One row of a mirror.
public struct Row: Equatable, Sendable {
  /// How a row came to be as it is, as far as this mirror has seen.
  public enum Origin: UInt8, Sendable {
    /// It came with a snapshot.
    case snapshot
    /// A delta added it.
    case added
    /// A delta moved it here.
    case moved
    /// A delta replaced its element.
    case updated
  }

  /// The element's compact JSON text, UTF-8, as the daemon sent it.
  public var element: [UInt8]
  /// The row's type; nil when it has none.
  public var type: String?
  /// How it came to be as it is.
  public var origin: Origin
  /// The revision that made it so.
  public var revision: UInt64

  public init(element: [UInt8], type: String? = nil, origin: Origin = .snapshot, revision: UInt64 = 0) {
    self.element = element
    self.type = type
    self.origin = origin
    self.revision = revision
  }
}
