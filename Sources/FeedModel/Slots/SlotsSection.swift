import FeedJSON

/// The one section of a slots feed: its rows are looked up in the contents, never stored.
final class SlotsSection: Section {
  @exclusivity(unchecked) private var contents: [Feed?]
  private var rule: SlotsRule
  /// The types' names as JSON strings, in memory that stays put.
  @exclusivity(unchecked) private var typeNames: [QuotedName]
  /// The layout as it was last, with the counts it was made of.
  @exclusivity(unchecked) private var cached: (counts: [Int], layout: SlotsLayout)?
  /// The version of `shape` for which `cached` is right.
  @exclusivity(unchecked) private var cachedVersion: UInt64 = 0
  private let shape: Shape

  init(name: String, contents: [Feed?], rule: SlotsRule, types: [String], shape: Shape) {
    self.contents = contents
    self.rule = rule
    self.shape = shape
    typeNames = types.map(QuotedName.init)
    super.init(name: name)
  }

  func reset(contents: [Feed?], rule: SlotsRule, types: [String]) {
    self.contents = contents
    self.rule = rule
    typeNames = types.map(QuotedName.init)
    cached = nil
  }

  /// The layout for the contents as they are. O(1) while no row and no section of any feed came or went, else O(sections of the
  /// contents), and O(pattern · types) when their counts changed.
  var layout: SlotsLayout {
    if cachedVersion == shape.version, let cached { return cached.layout }
    let counts = contents.map { $0?.count ?? 0 }
    cachedVersion = shape.version
    if let cached, cached.counts == counts { return cached.layout }
    let fresh = SlotsLayout(rule, counts: counts)
    cached = (counts, fresh)
    return fresh
  }

  override var count: Int { layout.count }

  override func row(at index: Int) -> Row {
    row(for: layout.item(at: index))
  }

  override func element(at index: Int) -> ElementText {
    element(of: layout.item(at: index))
  }

  override func type(at index: Int) -> UnsafeRawBufferPointer {
    typeNames[layout.item(at: index).type].bytes
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
    Row(element: element(of: item), type: typeNames[item.type].bytes)
  }

  private func element(of item: SlotsItem) -> ElementText {
    guard let feed = contents[item.type] else { preconditionFailure("a type without content has no rows") }
    return feed.element(atFlat: item.index)
  }
}

extension Feed {
  /// The element at an index, which must be there, in the feed's rows in flattened order. O(sections + log n).
  func element(atFlat index: Int) -> ElementText {
    var rest = index
    var place = 0
    let last = sectionCount &- 1
    while place < last {
      let section = section(at: place)
      let count = section.count
      if rest < count { return section.element(at: rest) }
      rest &-= count
      place &+= 1
    }
    return section(at: place).element(at: rest)
  }
}
