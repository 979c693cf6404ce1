/// Looking at feeds: everything is put together anew.
extension TreeReference {
  /// What every feed and bin shows.
  func views() -> [String: TreeView] {
    var views: [String: TreeView] = [:]
    for name in names { _ = view(name, &views) }
    return views
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
    guard let feed = feeds[name] else { return binSections(name) }
    switch feed.definition.content {
    case .list(_, let type):
      let rows = feed.items.map {
        TreeRow(token: $0.token, text: $0.element.text, type: $0.element.type(at: type))
      }
      return [TreeSection(name: name, rows: rows)]
    case .collection: return feed.bins.flatMap { binSections("\(name)/\($0.name)") }
    case .composed, .segmented:
      return feed.shown.flatMap { child in
        let view = view(child, &views)
        return view.sections.map { section in
          TreeSection(name: section.name, rows: section.rows.map { feed.row($0, of: view) })
        }
      }
    case .slots(let slots):
      var contents: [String: [TreeRow]] = [:]
      for content in slots.contents { contents[content.type] = view(content.feed, &views).rows }
      let rows = NaiveSlots.list(slots, contents) { type, row in
        TreeRow(token: mix(feed.plans, type.token, row.token), text: row.text, type: "\"\(type)\"")
      }
      return [TreeSection(name: name, rows: rows)]
    case .view(let window):
      let source = view(window.of, &views)
      return [TreeSection(name: name, rows: window.rows(source.rows).map { feed.row($0, of: source) })]
    }
  }

  private func binSections(_ name: String) -> [TreeSection] {
    let parts = name.split(separator: "/")
    guard parts.count == 2, let feed = feeds[String(parts[0])], let collection = feed.collection,
      let bin = feed.bins.first(where: { $0.name == parts[1] })
    else { return [] }
    let rows = bin.rows.compactMap { row in
      feed.elements[row.id].map {
        TreeRow(token: row.token, text: $0.element.text, type: $0.element.type(at: collection.type))
      }
    }
    return [TreeSection(name: name, rows: rows)]
  }
}

extension TreeFeed {
  /// A child's row as a row of this provider.
  func row(_ row: TreeRow, of child: TreeView) -> TreeRow {
    TreeRow(token: token(row.token, of: child.instance), text: row.text, type: row.type)
  }

  func token(_ token: UInt64, of child: UInt64) -> UInt64 {
    mix(instance, child, stints[child] ?? 0, token)
  }
}

extension String {
  /// The same for equal names.
  var token: UInt64 { utf8.reduce(17) { mix($0, UInt64($1)) } }
}
