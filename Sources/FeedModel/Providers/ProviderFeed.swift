import FeedChange
import FeedJSON

/// A feed made of other feeds, its children, flattened to one list of sections (seed 002, `SectionProvider`).
///
/// A child may be any feed or bin, and may hang under several parents, once directly in each. The mapping from tree to list
/// is the running sum of the children's section counts: finding a section is O(log children) at each level.
/// `@exclusivity(unchecked)`: see `Catalog`.
public class ProviderFeed: Feed {
  /// The children in order.
  @exclusivity(unchecked) public internal(set) var children: [Feed] = []
  /// Which of the children show.
  var shownPlaces: Range<Int> { children.indices }
  /// The children whose sections show, in order.
  var shown: ArraySlice<Feed> { children[shownPlaces] }

  /// The children that showed after the last commit, and how many sections each had then.
  private var published: [(feed: Feed, sections: Int)] = []
  /// The places of the children that changed in the commit under way.
  @exclusivity(unchecked) private var changed: [Int] = []
  /// Whether children or their sections may have come or gone since the last commit.
  @exclusivity(unchecked) private var isRestructured = false
  /// Where the sections of each child that shows begin, and of the others where the next one's do; one more entry for the
  /// end. Empty until asked for after the structure changed.
  @exclusivity(unchecked) private var starts: [Int] = []

  public override var sectionCount: Int {
    if isGone { return 0 }
    map()
    return starts[starts.count &- 1]
  }

  /// Makes the mapping of the children's sections if it is not known.
  private func map() {
    if !starts.isEmpty { return }
    var end = 0
    let shown = shownPlaces
    for (place, child) in children.enumerated() {
      starts.append(end)
      if shown.contains(place) { end += child.sectionCount }
    }
    starts.append(end)
  }

  public override func section(at index: Int) -> Section {
    map()
    // The last child that begins there or before it: those that do not show, and those without sections, begin where the
    // one after them does.
    let child = (1..<Swift.max(children.count, 1)).partitionPoint { starts[$0] <= index } &- 1
    return children[child].section(at: index &- starts[child])
  }

  public override var hasTypes: Bool {
    for place in shownPlaces where children[place].hasTypes { return true }
    return false
  }

  override func shows(place: Int) -> Bool { shownPlaces.contains(place) }

  override func shift(ofSectionsAt place: Int) -> Int? {
    map()
    return starts[place]
  }

  override var sources: [Feed] { children }

  override func joinSources() {
    for (place, child) in children.enumerated() { child.addParent(self, place: place) }
  }

  override func leaveSources() {
    for child in children { child.removeParent(self) }
  }

  /// Takes on children when the feed is defined or redefined; those it had are let go.
  func adopt(_ feeds: [Feed]) {
    leaveSources()
    children = feeds
    joinSources()
    repeats = max(1, children.reduce(0) { Feed.saturatingSum($0, $1.repeats) })
    structureDidChange()
  }

  override func structureDidChange() {
    if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
    isRestructured = true
    super.structureDidChange()
  }

  override func note(changed place: Int) {
    changed.append(place)
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
    if !changed.isEmpty { changed.removeAll(keepingCapacity: true) }
  }

  /// Only rows changed: the children's changes, shifted by where their sections begin. O(changes · log children).
  private func deriveFromRows() {
    net.removeAll(keepingCapacity: true)
    map()
    if changed.count > 1 { changed.sort() }
    let shown = shownPlaces
    for place in changed where shown.contains(place) {
      net.append(children[place].net, before: starts[place], after: starts[place])
    }
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

extension Change {
  /// Lists all sections of a feed, with all their rows, as added from `section` on, and steps over them.
  mutating func addSections(of feed: Feed, at section: inout Int) {
    for index in 0..<feed.sectionCount {
      let content = feed.section(at: index)
      sectionsAdded.append(SectionAddition(at: UInt32(section), name: content.name))
      for row in 0..<content.count { added.append(IndexPath(section: UInt32(section), row: UInt32(row))) }
      section += 1
    }
  }
}
