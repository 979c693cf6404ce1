/// A slots list built row by row, as the rule words it.
struct NaiveSlots {
  private let slots: TreeSlots
  private let contents: [String: [TreeRow]]
  private var used: [String: Int] = [:]
  private var live: Set<String>
  private var rows: [(type: String, row: TreeRow)] = []

  static func list(
    _ slots: TreeSlots, _ contents: [String: [TreeRow]], _ make: (String, TreeRow) -> TreeRow
  ) -> [TreeRow] {
    var naive = NaiveSlots(slots, contents)
    naive.build()
    return naive.rows.map { make($0.type, $0.row) }
  }

  private init(_ slots: TreeSlots, _ contents: [String: [TreeRow]]) {
    self.slots = slots
    self.contents = contents
    live = slots.defaultType == nil ? Set(slots.repeatables).intersection(slots.pattern) : []
  }

  private mutating func next(of type: String) -> TreeRow? {
    let place = used[type] ?? 0
    guard let rows = contents[type], place < rows.count else { return nil }
    used[type] = place + 1
    return rows[place]
  }

  private func isEmpty(_ type: String) -> Bool { (used[type] ?? 0) >= (contents[type]?.count ?? 0) }

  /// Whether everything ends in the pass.
  private mutating func pass(_ types: [String]) -> Bool {
    var foundEmpty = false
    for type in types {
      if !isEmpty(type) {
        if foundEmpty && !live.contains(type) { continue }
        if let row = next(of: type) { rows.append((type, row)) }
      } else if let fallback = slots.defaultType, let row = next(of: fallback) {
        rows.append((fallback, row))
      } else {
        if live.remove(type) == nil { foundEmpty = true }
        if live.isEmpty { return true }
      }
    }
    return false
  }

  private mutating func build() {
    if slots.pattern.isEmpty || pass(slots.header) { return }
    while !pass(slots.pattern) {}
    for (position, type) in slots.fixed.sorted(by: { $0.key < $1.key })
    where !slots.pattern.contains(type) && (0...rows.count).contains(position) {
      if let row = next(of: type) { rows.insert((type, row), at: position) }
    }
  }
}
