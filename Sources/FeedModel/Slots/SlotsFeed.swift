/// A feed whose rows are those of other feeds, interleaved by a pattern of types (seeds 000 and 001).
///
/// One section; each row carries the name of its type. The list is never built: a row is found by the arithmetic of
/// `SlotsLayout` from the counts of the contents.
public final class SlotsFeed: Feed {
  /// What the feed is made of, with the feeds that stand behind the types.
  struct Plan {
    let definition: SlotsDefinition
    let rule: SlotsRule
    /// The content of each type; nil for a type that has none.
    let contents: [Feed?]
    /// The types' names, by number.
    let typeNames: [String]
  }

  private(set) var plan: Plan
  private let slots: SlotsSection
  /// The rows of each section of each content after the last commit, and the layout they made.
  private var publishedCounts: [[Int]] = []
  private var publishedLayout: SlotsLayout
  private var changed: Set<ObjectIdentifier> = []

  public override var kind: String { "slots" }

  init(name: String, plan: Plan, revision: UInt64) {
    self.plan = plan
    slots = SlotsSection(name: name, contents: plan.contents, rule: plan.rule, types: plan.typeNames)
    publishedLayout = slots.layout
    super.init(name: name, revision: revision)
    adoptSources()
    publish()
  }

  public override var sectionCount: Int { isGone ? 0 : 1 }
  public override func section(at index: Int) -> Section { slots }
  public override var hasTypes: Bool { true }
  override var sources: [Feed] { plan.contents.compactMap { $0 } }

  override func note(changed source: Feed) {
    changed.insert(ObjectIdentifier(source))
  }

  /// The slots stay one section whatever becomes of the contents' sections.
  override func structureDidChange() {}

  /// Takes on another plan; types keep nothing in common with the old one's.
  func adopt(_ plan: Plan) {
    for feed in sources { feed.removeParent(self) }
    self.plan = plan
    adoptSources()
    slots.reset(contents: plan.contents, rule: plan.rule, types: plan.typeNames)
  }

  private func adoptSources() {
    for feed in sources { feed.addParent(self) }
    repeats = max(1, sources.reduce(0) { Feed.saturatingSum($0, $1.repeats) })
  }

  /// All rows go and all come: what another plan does to the list.
  func wholeChange(from count: Int) -> Change {
    Change(
      deleted: (0..<UInt32(count)).map { IndexPath(section: 0, row: $0) },
      added: (0..<UInt32(slots.count)).map { IndexPath(section: 0, row: $0) })
  }

  func publish() {
    publishedCounts = plan.contents.map { feed in
      feed.map { feed in (0..<feed.sectionCount).map { feed.section(at: $0).count } } ?? []
    }
    publishedLayout = slots.layout
    changed.removeAll(keepingCapacity: true)
  }

  override func contentWasRestored() {
    publish()
  }

  override func derive() {
    if isGone {
      net.sectionsDeleted = [0]
    } else if isNew {
      net.removeAll()
      isNew = false
    } else if isReplanned {
      net = wholeChange(from: publishedLayout.count)
      isReplanned = false
    } else {
      let before = publishedCounts
      let layout = publishedLayout
      let changes = contentChanges(before)
      net = layout.change(to: slots.layout, contents: changes)
    }
    publish()
  }

  /// Whether the plan changed since the last commit.
  var isReplanned = false

  private func contentChanges(_ before: [[Int]]) -> [Change] {
    plan.contents.enumerated().map { type, feed in
      guard let feed, changed.contains(ObjectIdentifier(feed)) else { return .empty }
      if feed.sectionCount == 1 && before[type].count == 1 && feed.net.sectionsDeleted.isEmpty { return feed.net }
      return feed.net.flattened(
        before: before[type], after: (0..<feed.sectionCount).map { feed.section(at: $0).count })
    }
  }
}
