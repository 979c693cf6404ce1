import FeedModel
import Glibc

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Compares mirrors, answers and the engine's feeds with the reference.
extension TreeWorld {
  /// The daemon's revision after the last operation.
  var commits: Int {
    get { statistics["revision", default: 0] }
    set { statistics["revision"] = newValue }
  }

  /// Brings the copies to the last commit.
  func applyDeltas() throws {
    for (name, mirror) in mirrors where mirror.isEnded || views[name] == nil {
      guard mirror.isEnded || deltas[name]?["ended"]?.bool == true else {
        throw fail("the watch of the watch of \(name) did not end")
      }
    }
    for (name, delta) in deltas {
      do { try mirrors[name]?.take(delta: delta, settled: settled[name]) } catch {
        throw fail("the watcher of \(name): \(error)")
      }
      if mirrors[name]?.isEnded == true {
        mirrors[name] = nil
        told[name] = nil
      }
    }
  }

  /// Watches the feeds that the last operation created.
  func watchNew() throws {
    for name in views.keys.sorted() where mirrors[name] == nil {
      try watch(name)
      if generator.chance(20) { try count(name) }
    }
  }

  private func watch(_ name: String) throws {
    told[name] = []
    touched.insert(name)
    let spanning = generator.chance(50)
    let params = "{\"feed\":\"\(name)\",\"spanning\":\(spanning),\"ids\":\(generator.chance(50))}"
    for text in harness.ask(watcher, "watch", params) {
      guard let frame = Value(text) else { throw fail("invalid JSON: \(text)") }
      if let result = frame["result"] {
        mirrors[name] = try Mirror(result, since: nil, initial: true, spanning: spanning)
      } else if frame["method"]?.string == "snapshot", let params = frame["params"] {
        try mirrors[name]?.take(snapshot: params)
      } else {
        throw fail("an unexpected frame: \(text)")
      }
    }
  }

  /// Compares the copies that changed, or should have. A copy without a delta is as it was when it was compared last.
  func compareMirrors() throws {
    for (name, view) in views {
      guard let mirror = mirrors[name], mirror.isLive else { throw fail("no live mirror of \(name)") }
      if keepsPast && past[name]?.last?.revision != mirror.revision { past[name, default: []].append(mirror) }
      if touched.contains(name), !same(mirror, view) {
        throw fail("the mirror of \(name) is \(mirror.sections), not \(view.short)")
      }
    }
  }

  func same(_ mirror: Mirror, _ view: TreeView) -> Bool {
    mirror.sections.count == view.sections.count && zip(mirror.sections, view.sections).allSatisfy(same)
  }

  private func same(_ mirror: Mirror.Section, _ section: TreeSection) -> Bool {
    mirror.name == section.name && mirror.rows.count == section.rows.count
      && zip(mirror.rows, section.rows).allSatisfy { $0.element == $1.text && $0.type == $1.type }
  }

  /// Compares the revisions and sections of all of the engine's feeds, and the rows of those that changed.
  /// - Parameter isWhole: whether to compare the rows of all feeds.
  func compareEngine(isWhole: Bool) throws {
    let catalog = harness.engine.catalog
    if catalog.feeds.count != reference.feeds.count { throw fail("\(catalog.feeds.count) feeds") }
    for (name, view) in views {
      guard let feed = try? catalog.feed(named: name) else { throw fail("\(name) is not defined") }
      if mirrors[name].map({ UInt64($0.revision) != feed.revision }) ?? false {
        throw fail("\(name) has revision \(feed.revision), its mirror \(mirrors[name]?.revision ?? -1)")
      }
      guard feed.sectionCount == view.sections.count else { throw fail("\(name) has \(feed.sectionCount) sections") }
      for (index, wanted) in view.sections.enumerated() {
        let section = feed.section(at: index)
        guard section.name == wanted.name, section.count == wanted.rows.count else {
          throw fail("\(name) has \(section.count) rows in \(section.name), not \(wanted)")
        }
        guard isWhole || touched.contains(name) else { continue }
        for (row, wanted) in wanted.rows.enumerated() {
          let found = section.row(at: row)
          if !found.text.isUTF8(wanted.text)
            || !(found.type.isEmpty ? "null" == wanted.type : found.type.isUTF8(wanted.type))
          {
            throw fail("\(name) has \(String(decoding: found.text, as: UTF8.self)), not \(wanted)")
          }
        }
      }
    }
  }

  /// Compares the answers of reading methods for a random feed.
  func read() throws {
    guard !views.isEmpty else { return }
    let name = generator.pick(views.keys.sorted())
    guard let view = views[name] else { return }
    let snapshot = Mirror(snapshot: try ask("snapshot", "{\"feed\":\"\(name)\"}")["result"] ?? .null, of: name)
    if !same(snapshot, view) {
      throw fail("the snapshot of \(name) is \(snapshot.sections), not \(view.short)")
    }
    let digest = try ask("verify", "{\"feed\":\"\(name)\"}")["result"]
    guard digest?["digest"]?.string == snapshot.digest else { throw fail("the digest of \(name): \(digest as Any)") }
    try query(name, view)
    try describe(name, view)
    let section = generator.below(view.sections.count)
    try readRows(name, section, view.sections.indices.contains(section) ? view.sections[section].rows : nil)
  }

  /// Compares the nodes of a query and their places. A query of a single is about its element, not about a list.
  private func query(_ name: String, _ view: TreeView) throws {
    if reference.feeds[name]?.list?.isSingle == true { return }
    let filter = generator.pick(TreeFilter.allCases)
    let path = filter.text.map { "$[?\($0)]" } ?? "$[*]"
    let found = try ask("query", "{\"feed\":\"\(name)\",\"path\":\"\(path)\",\"places\":true}")["result"]
    let wanted = view.paths.filter { path in
      view.sections[path.section].rows[path.row].element.map(filter.accepts) ?? (filter == .everything)
    }
    guard found?["nodes"]?.items.map(\.text) == wanted.map({ view.sections[$0.section].rows[$0.row].text }),
      found?["places"]?.items.map(\.path) == wanted.map({ [$0.section, $0.row] })
    else { throw fail("query \(path) of \(name): \(found as Any)") }
  }

  private func readRows(_ name: String, _ section: Int, _ rows: [TreeRow]?) throws {
    let (from, count) = (generator.below(6), generator.below(6))
    let range = try ask("range", "{\"feed\":\"\(name)\",\"section\":\(section),\"from\":\(from),\"count\":\(count)}")
    guard let rows else {
      if range.errorCode != -32005 { throw fail("a range of a section that does not exist: \(range)") }
      return
    }
    let wanted = rows.dropFirst(from).prefix(count)
    guard range["result"]?["elements"]?.items.map(\.text) == wanted.map(\.text),
      range["result"]?["types"]?.items.map(\.text) == wanted.map(\.type)
    else { throw fail("range \(from) \(count) of \(name): \(range)") }
    let row = try ask("get", "{\"feed\":\"\(name)\",\"at\":[\(section),\(from)]}")["result"]
    let expected = rows.indices.contains(from) ? rows[from] : nil
    guard row?["element"]?.text == expected?.text ?? "null", row?["type"]?.text == expected?.type ?? "null" else {
      throw fail("get \(section),\(from) of \(name): \(row as Any)")
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether these bytes are the UTF-8 of the text. Called for every row of every feed after every operation, so it must be fast.
  fileprivate func isUTF8(_ text: String) -> Bool {
    text.utf8.count == count
      && text.utf8.withContiguousStorageIfAvailable { bytes in
        guard let ours = baseAddress, let theirs = bytes.baseAddress else { return count == 0 }
        return memcmp(ours, theirs, count) == 0
      } ?? elementsEqual(text.utf8)
  }
}

extension Value {
  fileprivate static var null: Value { Value("null")! }
}
