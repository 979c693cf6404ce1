/// A feed as it was at one revision, read in parts while the feed goes on changing.
///
/// Making one copies no rows; changes made while it lives preserve what it has yet to read.
public final class FeedSnapshot {
  public let sections: [SectionSnapshot]
  public let revision: UInt64

  init(sections: [SectionSnapshot], revision: UInt64) {
    self.sections = sections
    self.revision = revision
  }
}
