/// A place in a daemon's history from which a watch can go on.
public struct FeedPosition: Equatable, Sendable {
  /// Names one unbroken history; a revision means nothing in another.
  public var epoch: String
  /// The last commit that has been seen.
  public var revision: UInt64

  public init(epoch: String, revision: UInt64) {
    self.epoch = epoch
    self.revision = revision
  }
}
