import FeedChange
import FeedJSON

/// A feed with one section: a window of the rows of one other feed, filtered and sorted (Protocol/README.md, "Views").
///
/// Invariant: after each commit, `published` holds the plan of the section and the row counts of its source.
final class ViewKind: DerivedKind, SingleSectionKind {
  private struct Published {
    let plan: ViewPlan
    var counts: SectionCounts
  }

  let shown: ViewSection
  private let counts: RowCounts
  /// The published state; nil before the first commit.
  private var published: Published?
  /// The rows of the index that an account is charged.
  var charge = ViewCharge()

  init(name: String, plan: ViewPlan, counts: RowCounts, limits: Limits, _ discarded: DiscardedElements, _ pace: Pace) {
    self.counts = counts
    shown = ViewSection(name: name, plan: plan, counts: counts, limits: limits, discarded, pace)
  }

  private var plan: ViewPlan { shown.plan }
  var source: Feed { plan.source }
  /// Whether the view keeps all rows of its source in an index: it has a filter or a sort.
  var hasIndex: Bool { !plan.definition.isPlain }

  /// Whether its rows depend on the limits on steps.
  var hasFilter: Bool { plan.definition.filter != nil }

  /// Evaluates and sorts the rows before the first commit, which may then be short. The rows must not change meanwhile.
  func prepare() { shown.prepare() }
  var wireName: String { "view" }
  var definedAs: FeedDefinition.Content? { .view(plan.definition) }
  var hasTypes: Bool { plan.source.hasTypes }
  var rows: RowStore? { nil }
  var sources: [(place: Int, feed: Feed)] { [(0, plan.source)] }
  func origins(of rows: [TracedRow], _ pace: Pace) -> [(source: Feed, rows: [TracedRow])] {
    let source = plan.source
    return [(source, rows.moved(to: source.paths(ofFlat: shown.sourceRows(of: rows, pace), pace)))]
  }
  var stepsPerRow: Int { shown.stepsPerRow }

  /// Whether the view has a filter that may take many steps over one element.
  var isSlow: Bool { plan.definition.filter.map { !$0.isShort } ?? false }
  /// Evaluates such a filter without following the source; nil for other filters.
  var slowJudge: ViewJudge? { isSlow ? shown.makeJudge() : nil }
  var publishedSectionCount: Int { published == nil ? 0 : 1 }

  func sourcesWereRestored() {
    shown.rebuild()
    publish()
  }

  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .view(let content) = definition.content else { throw conflict(of: feed, with: definition) }
    if plan.definition == content { return }
    let (graph, pace) = (catalog.graph, catalog.commit.pace)
    let (former, before) = (plan, shown.presentRows(pace))
    let fresh = try catalog.plan(content, for: feed, named: feed.name, account: feed.account)
    install(fresh, feed, graph)
    catalog.commit.logStructure { [unowned self] in install(former, feed, graph) }
    let after = shown.presentRows(pace)
    let isRepeatable = graph.isRepeatable(feed.number)
    try catalog.checkRowsOfViews(above: feed, added: after.count - (isRepeatable ? before.count : 0))
    if !isRepeatable { try catalog.commit.budget.useStepsOfViews(above: feed.number, showing: [feed]) }
    let isSame = former.source === fresh.source
    let change = isSame ? Self.change(from: before, to: after, pace) : replacement(of: before.count, pace)
    let growth = isRepeatable ? nil : RowGrowth(feed: after.count)
    catalog.commit.finishOperation(on: feed.number, result: change, growth: growth)
    catalog.commit.publisher.open(feed.number)
  }

  private func install(_ plan: ViewPlan, _ feed: Feed, _ graph: FeedGraph) {
    graph.relink(feed) { shown.install(plan) }
  }

  /// Evaluates the filter again under other limits on its steps, between two commits. Returns whether other rows are shown.
  func use(_ limits: Limits, _ feed: Feed, _ graph: FeedGraph) -> Bool {
    let before = shown.publishedRows(of: source.count, as: plan, Pace())
    // The steps that the graph counts depend on the limits.
    graph.relink(feed) { shown.use(limits) }
    sourcesWereRestored()
    return before != shown.publishedRows(of: source.count, as: plan, Pace())
  }

  // MARK: Changes

  private func publish() {
    published = Published(plan: plan, counts: plan.source.sectionCounts)
    updateCharge()
  }

  private func updateCharge() { charge.set(rows: hasIndex ? published?.counts.total ?? 0 : 0) }

  func derive(_ changes: borrowing SourceChanges, into change: inout Change) {
    guard let former = published?.plan else {
      shown.rebuild()
      return publish()
    }
    let (before, pace) = (published?.counts.total ?? 0, changes.pace)
    if former === plan {
      changes.forEach { _, shift, below in
        published?.counts.follow(below, shift: shift, pace) { source, after in
          shown.follow(source, before: before, after: after, into: &change)
        }
      }
      updateCharge()
    } else {
      var source = Change()
      // After a redefinition, `published` may have the row counts of another source.
      if former.source === plan.source {
        changes.forEach { _, shift, below in
          source = published?.counts.follow(below, shift: shift, pace) ?? source
        }
      }
      change = redefinition(from: former, before, source, pace ?? Pace())
      publish()
    }
    if !change.onlyUpdates { counts.advance() }
  }

  /// The change from the rows of the previous plan to the current ones. With the same source, rows that both show stay.
  private func redefinition(from former: ViewPlan, _ count: Int, _ source: Change, _ pace: Pace) -> Change {
    let before = shown.publishedRows(of: count, as: former, pace)
    shown.rebuild()
    guard former.source === plan.source else { return replacement(of: before.count, pace) }
    let map = FlatChange(source, pace)
    var changed = Set<Int>(minimumCapacity: map.replaced.count)
    for row in map.replaced {
      changed.insert(row)
      if row & 15 == 15 { pace.spend() }
    }
    let kept = map.isIdentity ? before : before.map(pace) { map.map($0)?.index ?? -1 }
    return Self.change(from: kept, to: shown.presentRows(pace), changed: changed, pace)
  }

  /// The change that deletes `count` rows and adds all current rows.
  private func replacement(of count: Int, _ pace: Pace) -> Change {
    .between([Int](repeating: -1, count: count, pace), shown.count, pace) { _ in false }
  }

  /// The change between two states of the view, by the present places of their rows in the source; negative if they are gone.
  /// - Parameter changed: the rows of the source whose element changed.
  private static func change(from before: [Int], to after: [Int], changed: Set<Int> = [], _ pace: Pace) -> Change {
    var places = [Int: Int](minimumCapacity: after.count)
    for (place, row) in after.enumerated() {
      places[row] = place
      if place & 15 == 15 { pace.spend() }
    }
    var placesAfter: [Int] = []
    placesAfter.reserveCapacity(before.count)
    for row in before {
      placesAfter.append(places[row] ?? -1)
      if placesAfter.count & 15 == 0 { pace.spend() }
    }
    return .between(placesAfter, after.count, pace) { changed.isEmpty || !changed.contains(after[$0]) }
  }
}
