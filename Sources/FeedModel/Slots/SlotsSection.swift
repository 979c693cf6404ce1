import FeedJSON

/// The one section of a slots feed: its rows are looked up in the contents, never stored.
final class SlotsSection: Section {
  private var contents: [Feed?]
  private var rule: SlotsRule
  /// The types' names as JSON strings, in memory that stays put.
  private var typeNames: [QuotedName]
  private var cached: (counts: [Int], layout: SlotsLayout)?

  init(name: String, contents: [Feed?], rule: SlotsRule, types: [String]) {
    self.contents = contents
    self.rule = rule
    typeNames = types.map(QuotedName.init)
    super.init(name: name)
  }

  func reset(contents: [Feed?], rule: SlotsRule, types: [String]) {
    self.contents = contents
    self.rule = rule
    typeNames = types.map(QuotedName.init)
    cached = nil
  }

  /// The layout for the contents as they are. O(sections of the contents), and O(pattern · types) when counts changed.
  var layout: SlotsLayout {
    let counts = contents.map { $0?.count ?? 0 }
    if let cached, cached.counts == counts { return cached.layout }
    let fresh = SlotsLayout(rule, counts: counts)
    cached = (counts, fresh)
    return fresh
  }

  override var count: Int { layout.count }

  override func row(at index: Int) -> Row {
    row(for: layout.item(at: index))
  }

  override func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    let layout = layout
    for index in range { body(row(for: layout.item(at: index))) }
  }

  override func makeSnapshot() -> SectionSnapshot {
    let layout = layout
    var fixed: [Int: ElementText] = [:]
    for position in layout.fixedPositions {
      let element = row(for: layout.item(at: position)).element
      element.retain()
      fixed[position] = element
    }
    return SlotsSnapshot(
      name: name, layout: layout, fixed: fixed, contents: contents.map { $0?.makeSnapshot() }, types: typeNames)
  }

  private func row(for item: SlotsItem) -> Row {
    guard let feed = contents[item.type] else { preconditionFailure("a type without content has no rows") }
    return Row(element: feed.row(atFlat: item.index).element, type: typeNames[item.type].bytes)
  }
}

extension Feed {
  /// The row at an index in the feed's rows in flattened order. O(sections + log n).
  func row(atFlat index: Int) -> Row {
    var rest = index
    for place in 0..<sectionCount {
      let section = section(at: place)
      if rest < section.count { return section.row(at: rest) }
      rest -= section.count
    }
    preconditionFailure("row \(index) of \(name) is out of range")
  }
}
