import FeedChange
import FeedJSON

/// The number of rows of each section of a feed, kept up to date by a watch without elements.
///
/// Invariant: `sections` are those of the feed at `revision`.
public struct FeedCounts: Equatable, Sendable {
  /// The sections with their numbers of rows, in order.
  public private(set) var sections: [SectionSummary]
  public private(set) var revision: UInt64

  /// The number of rows of all sections.
  public var total: Int { sections.reduce(0) { $0 + $1.count } }

  /// Creates the counts at the start of a watch.
  public init(_ start: WatchStart) {
    sections = start.sections
    revision = start.revision
  }

  /// Applies the `params` of a `delta`, or of a `snapshot` that resets the watch. Ignores a revision that the counts
  /// already have, such as that of the first delta of a resumed watch.
  mutating func apply(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "delta")
    let revision = try reader.revision("revision")
    guard revision > self.revision || reader.flag("reset") else { return }
    var changed = sections
    if reader.flag("reset") {
      changed = try reader.sections("sections")
    } else {
      let structure = try Change(sectionsOf: params)
      guard structure.sectionsFit(changed.count) else {
        throw MalformedMessage("delta: \"sections\" does not fit \(counted(changed.count, "section"))")
      }
      structure.applySections(to: &changed) { SectionSummary(name: $0.name, count: 0) }
      let counts = try reader.array("counts").compactMap(\.int)
      guard counts.count == changed.count else {
        throw MalformedMessage(
          "delta: \"counts\" has \(counted(counts.count, "number")) for \(counted(changed.count, "section"))")
      }
      for (place, count) in counts.enumerated() { changed[place].count = count }
    }
    (sections, self.revision) = (changed, revision)
  }
}

extension Change {
  /// Whether the deleted and added sections are valid in a feed of `count` sections.
  fileprivate func sectionsFit(_ count: Int) -> Bool {
    guard sectionsDeleted.allSatisfy({ $0 < UInt32(clamping: count) }),
      zip(sectionsDeleted, sectionsDeleted.dropFirst()).allSatisfy(<)
    else { return false }
    let left = count - sectionsDeleted.count
    return sectionsAdded.enumerated().allSatisfy { $1.at <= UInt32(clamping: left + $0) }
  }
}
