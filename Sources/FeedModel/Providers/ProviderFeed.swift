/// A feed made of other feeds, its children, flattened to one list of sections (seed 002, `SectionProvider`).
///
/// A child may be any feed or bin, and may hang under several parents, once directly in each. The mapping from tree to list
/// is the running sum of the children's section counts: finding a section is O(log children) at each level.
public class ProviderFeed: Feed {
  /// The children in order.
  public internal(set) var children: [Feed] = []
  /// The children whose sections show, in order.
  var shown: [Feed] { children }

  /// The children that showed after the last commit, and how many sections each had then.
  private var published: [(feed: Feed, sections: Int)] = []
  /// The children that changed in the commit under way.
  private var changed: [Feed] = []
  /// Whether children or their sections may have come or gone since the last commit.
  private var isRestructured = false
  private var mapping: SectionMapping?
  /// Whether a child that shows has types, as long as neither changes.
  private var haveTypes: Bool?

  /// Where the shown children's sections begin, made again after the structure changed.
  var sectionMapping: SectionMapping {
    if let mapping { return mapping }
    let fresh = SectionMapping(shown)
    mapping = fresh
    return fresh
  }

  public override var sectionCount: Int { isGone ? 0 : sectionMapping.count }

  public override func section(at index: Int) -> Section {
    let place = sectionMapping.place(of: index)
    return place.feed.section(at: place.section)
  }

  public override var hasTypes: Bool {
    if let haveTypes { return haveTypes }
    let found = shown.contains(where: \.hasTypes)
    haveTypes = found
    return found
  }

  override var sources: [Feed] { children }

  /// Takes on children when the feed is defined or redefined; those it had are let go.
  func adopt(_ feeds: [Feed]) {
    for child in children { child.removeParent(self) }
    children = feeds
    for child in children { child.addParent(self) }
    repeats = max(1, children.reduce(0) { Feed.saturatingSum($0, $1.repeats) })
    structureDidChange()
  }

  override func structureDidChange() {
    mapping = nil
    haveTypes = nil
    isRestructured = true
    super.structureDidChange()
  }

  override func note(changed child: Feed) {
    changed.append(child)
  }

  /// Notes the structure as the one that watchers know.
  func publishStructure() {
    published = shown.map { ($0, $0.sectionCount) }
    isRestructured = false
  }

  override func contentWasRestored() {
    structureDidChange()
    publishStructure()
  }

  override func derive() {
    defer { changed.removeAll(keepingCapacity: true) }
    if isGone {
      net.sectionsDeleted = (0..<published.reduce(0) { $0 + $1.sections }).map(UInt32.init)
    } else if isNew {
      net.removeAll()
      publishStructure()
      isNew = false
    } else if isRestructured {
      net = restructuring(from: published, to: shown.map { ($0, $0.sectionCount) })
      publishStructure()
    } else {
      deriveFromRows()
    }
  }

  /// Only rows changed: the children's changes, shifted by where their sections begin. O(changes · log children).
  private func deriveFromRows() {
    net.removeAll(keepingCapacity: true)
    let mapping = sectionMapping
    var shifts: [(offset: Int, feed: Feed)] = []
    for child in changed {
      if let offset = mapping.offset(of: child) { shifts.append((offset, child)) }
    }
    if shifts.count > 1 { shifts.sort { $0.offset < $1.offset } }
    for (offset, child) in shifts { net.append(child.net, before: offset, after: offset) }
  }

  /// The change from one list of shown children to another, as it is when nothing else has happened.
  func restructured(from before: [(feed: Feed, sections: Int)]) -> Change {
    restructuring(from: before, to: shown.map { ($0, $0.sectionCount) }, withRows: false)
  }

  /// - Parameter withRows: whether the children that stay bring their own changes of this commit.
  private func restructuring(
    from before: [(feed: Feed, sections: Int)], to after: [(feed: Feed, sections: Int)], withRows: Bool = true
  ) -> Change {
    let places = Dictionary(uniqueKeysWithValues: after.enumerated().map { (ObjectIdentifier($1.feed), $0) })
    let common = before.indices.compactMap { place in
      places[ObjectIdentifier(before[place].feed)].map { (before: place, after: $0) }
    }
    let staying = longestIncreasing(common.map(\.after)).map { common[$0] }
    var change = Change()
    var (oldPlace, newPlace, oldSection, newSection) = (0, 0, 0, 0)
    for (old, new) in staying + [(before.count, after.count)] {
      while oldPlace < old {
        change.removeSections(before[oldPlace].sections, at: &oldSection)
        oldPlace += 1
      }
      while newPlace < new {
        change.addSections(of: after[newPlace].feed, at: &newSection)
        newPlace += 1
      }
      guard old < before.count else { break }
      if withRows { change.append(after[new].feed.net, before: oldSection, after: newSection) }
      oldSection += before[old].sections
      newSection += after[new].sections
      (oldPlace, newPlace) = (old + 1, new + 1)
    }
    return change
  }
}
