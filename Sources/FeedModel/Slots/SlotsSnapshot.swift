/// The rows of a slots feed as they were: the layout of that moment over snapshots of the contents.
///
/// But for its fixed rows a layout shows the rows of each type in their order, so every content is read once from front to
/// back. Fixed rows are few and are held from the start.
final class SlotsSnapshot: SectionSnapshot {
  private let layout: SlotsLayout
  private let contents: [FeedSnapshot?]
  /// The section that each content is read from next.
  private var sections: [Int]
  private let types: [QuotedName]
  private var next = 0
  /// The fixed rows by position, each with a reference of its own.
  private let fixed: [Int: ElementText]

  init(
    name: String, layout: SlotsLayout, fixed: [Int: ElementText], contents: [FeedSnapshot?], types: [QuotedName]
  ) {
    self.fixed = fixed
    self.layout = layout
    self.contents = contents
    self.types = types
    sections = [Int](repeating: 0, count: contents.count)
    super.init(name: name, count: layout.count)
  }

  deinit {
    for element in fixed.values { element.release() }
  }

  override var position: Int { next }

  override func next(max: Int, _ body: (Row) -> Void) -> Int {
    let end = min(next + Swift.max(max, 0), count)
    let start = next
    while next < end {
      let type = layout.item(at: next).type
      if let element = fixed[next] {
        body(Row(element: element, type: types[type].bytes))
      } else {
        read(type, body)
      }
      next += 1
    }
    return end - start
  }

  private func read(_ type: Int, _ body: (Row) -> Void) {
    guard let content = contents[type] else { return }
    while sections[type] < content.sections.count {
      let section = content.sections[sections[type]]
      let name = types[type].bytes
      if section.next(max: 1, { body(Row(element: $0.element, type: name)) }) > 0 { return }
      sections[type] += 1
    }
  }
}
