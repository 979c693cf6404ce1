/// Looking at feeds: everything is put together anew.
extension TreeReference {
  /// What every feed and bin shows.
  func views() -> [String: TreeView] {
    var views: [String: TreeView] = [:]
    for name in names { _ = view(name, &views) }
    return views
  }

  /// What every feed and bin shows after operations on some feeds that changed no definition.
  ///
  /// - Parameter before: what they showed before.
  func views(_ before: [String: TreeView], changed: Set<String>) -> [String: TreeView] {
    var stale = changed
    var count = 0
    while stale.count > count {
      count = stale.count
      for (name, feed) in feeds where !stale.contains(name) {
        if feed.definition.sources.contains(where: { stale.contains(Self.owner(of: $0)) }) { stale.insert(name) }
      }
    }
    var views = before.filter { !stale.contains(Self.owner(of: $0.key)) }
    for name in names { _ = view(name, &views) }
    return views
  }

  /// The feed that has a bin; a feed itself.
  private static func owner(of name: String) -> String {
    name.utf8.contains(UInt8(ascii: "/")) ? String(name.prefix { $0 != "/" }) : name
  }

  /// What one feed shows.
  func view(_ name: String) -> TreeView {
    var views: [String: TreeView] = [:]
    return view(name, &views)
  }

  private func view(_ name: String, _ views: inout [String: TreeView]) -> TreeView {
    if let known = views[name] { return known }
    let view = TreeView(instance: instance(of: name), sections: sections(name, &views))
    views[name] = view
    return view
  }

  private func sections(_ name: String, _ views: inout [String: TreeView]) -> [TreeSection] {
    if name == Self.listName { return [TreeSection(name: name, rows: listRows)] }
    guard let feed = feeds[name] else { return binSections(name) }
    switch feed.definition.content {
    case .list(let list):
      let rows = feed.items.map {
        TreeRow(token: $0.token, $0.element, type: list.type)
      }
      return [TreeSection(name: name, rows: rows)]
    case .collection:
      return feed.bins.map { bin in
        TreeSection(name: bin.name.isEmpty ? name : "\(name)/\(bin.name)", rows: rows(of: bin, feed))
      }
    case .composed, .segmented:
      return feed.shown.flatMap { child in
        let view = view(child, &views)
        return view.sections.map { section in
          TreeSection(
            name: section.name, rows: section.rows.map { feed.row($0, of: view) },
            token: feed.token(section.token, of: view.instance))
        }
      }
    case .slots(let slots):
      var contents: [String: [TreeRow]] = [:]
      var instances: [String: UInt64] = [:]
      for content in slots.contents {
        let view = view(content.feed, &views)
        (contents[content.type], instances[content.type]) = (view.rows, view.instance)
      }
      let rows = NaiveSlots.list(slots, contents) { type, row in
        TreeRow(
          token: mix(instances[type] ?? 0, type.token, row.token), text: row.text,
          type: slots.showsOwnTypes ? row.type : "\"\(type)\"", element: row.element)
      }
      return [TreeSection(name: name, rows: rows)]
    case .managed:
      return feed.sets.map { TreeSection(name: $0.name, rows: $0.rows.map(\.row)) }
    case .view(let window):
      let source = view(window.of, &views)
      let rows = window.rows(source.rows).map { feed.row($0, of: source) }
      return [TreeSection(name: name, rows: rows)]
    }
  }

  private func binSections(_ name: String) -> [TreeSection] {
    let parts = name.split(separator: "/")
    guard parts.count == 2, let feed = feeds[String(parts[0])],
      let bin = feed.feedBins.first(where: { $0.name == parts[1] })
    else { return [] }
    return [TreeSection(name: name, rows: rows(of: bin, feed))]
  }

  private func rows(of bin: TreeFeed.Bin, _ feed: TreeFeed) -> [TreeRow] {
    bin.rows.compactMap { row in
      feed.elements[row.id].map {
        TreeRow(token: row.token, $0.element, type: feed.collection?.type)
      }
    }
  }
}

/// Where rows come from.
extension TreeReference {
  /// The feeds below one through which a row comes, the nearest first.
  func origins(of name: String, _ token: UInt64, _ views: [String: TreeView]) -> [String] {
    guard let feed = feeds[name] else { return [] }
    for source in feed.definition.sources {
      guard let below = views[source] else { continue }
      for row in below.rows where feed.tokens(of: row, from: source, below.instance).contains(token) {
        return [source] + origins(of: source, row.token, views)
      }
    }
    return []
  }

  /// The code with which the feeds that rows come from refuse their selection; nil if they do not.
  ///
  /// - Parameter replaced: receives the feeds of which another row would be deselected.
  func refusal(
    ofSelecting paths: Set<[Int]>, in name: String, _ views: [String: TreeView], replaced: inout Set<String>
  ) -> Int? {
    guard let view = views[name] else { return nil }
    for path in paths.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      for feed in origins(of: name, view.sections[path[0]].rows[path[1]].token, views) {
        let rules = rules(of: feed)
        if rules?.selectable == false { return -32006 }
        if rules?.multiple == false, !replaced.insert(feed).inserted { return -32602 }
      }
    }
    return nil
  }

  /// The definition whose rules the rows of a feed obey: for a bin, that of its collection.
  func rules(of name: String) -> TreeDefinition? {
    feeds[name]?.definition ?? feeds[String(name.prefix { $0 != "/" })]?.definition
  }
}

extension TreeFeed {
  /// The tokens that a row of a source may have in this feed.
  fileprivate func tokens(of row: TreeRow, from source: String, _ instance: UInt64) -> [UInt64] {
    guard case .slots(let slots) = definition.content else {
      return children == nil || shown.contains(source) ? [token(row.token, of: instance)] : []
    }
    return slots.contents.filter { $0.feed == source }.map { mix(instance, $0.type.token, row.token) }
  }

  /// A child's row as a row of this provider.
  func row(_ row: TreeRow, of child: TreeView) -> TreeRow {
    var row = row
    row.token = token(row.token, of: child.instance)
    return row
  }

  func token(_ token: UInt64, of child: UInt64) -> UInt64 {
    mix(instance, child, token)
  }
}

extension String {
  /// The same for equal names.
  var token: UInt64 { utf8.reduce(17) { mix($0, UInt64($1)) } }
}
