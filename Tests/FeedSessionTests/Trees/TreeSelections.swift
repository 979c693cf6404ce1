import FeedModel

@testable import EngineTesting
@testable import ReferenceModel

/// The shared selection, which follows the identity of rows.
extension TreeWorld {
  /// Selects or deselects at random and checks the answer.
  func select() throws {
    guard !views.isEmpty else { return }
    let name = generator.pick(views.keys.sorted())
    guard let view = views[name] else { return }
    let isSelect = generator.chance(75)
    let all = generator.chance(10)
    let places = view.paths.map { [$0.section, $0.row] }
    var paths = (0..<(1 + generator.below(3))).compactMap { _ in places.isEmpty ? nil : generator.pick(places) }
    if generator.chance(4) { paths.append([view.sections.count, 0]) }
    let answer = try mutate(
      isSelect ? "select" : "deselect", "{\"feed\":\"\(name)\"," + (all ? "\"all\":true}" : "\"at\":\(paths)}"))
    let wanted = Set(all ? places : paths)
    let definition = reference.rules(of: name)
    let isMultiple = definition?.multiple ?? true
    var code: Int?
    if isSelect && definition?.selectable == false {
      code = -32006
    } else if !all && paths.contains(where: { !places.contains($0) }) {
      code = -32005
    } else if isSelect && !isMultiple && wanted.count > 1 {
      code = -32602
    }
    var replaced: Set<String> = []
    if isSelect && code == nil { code = reference.refusal(ofSelecting: wanted, in: name, views, replaced: &replaced) }
    guard answer.errorCode == code else { throw fail("expected error \(code as Any): \(answer)") }
    if code == nil {
      let tokens = wanted.compactMap { view.sections[$0[0]].rows[$0[1]].token }
      let selected = Set(selections[name] ?? [])
      if !isSelect {
        selections[name] = Array(selected.subtracting(tokens))
      } else if isMultiple {
        let kept = selected.filter { replaced.isDisjoint(with: reference.origins(of: name, $0, views)) }
        selections[name] = Array(kept.union(tokens))
      } else if !tokens.isEmpty {
        selections[name] = tokens
      }
    }
    statistics[code == nil ? "select" : "refused selection", default: 0] += 1
    let published = try collectDeltas()
    if !published.isEmpty { throw fail("a selection made deltas: \(published)") }
    try checkSelection(name)
    if code == nil, answer["result"]?["selected"]?.items.map(\.path) != told[name] {
      throw fail("\(answer) but the watcher received \(told[name] ?? [])")
    }
  }

  /// Deselects the rows that a commit removed: a row may come back with the next one, and then is not selected.
  func deselectGoneRows() {
    for (name, tokens) in selections where !tokens.isEmpty {
      guard let rows = views[name]?.rows else { continue }
      selections[name] = Array(Set(tokens).intersection(rows.map(\.token)))
    }
  }

  /// Checks that every selected row that still exists is selected at its present position.
  func compareSelections(_ before: [String: TreeView]) throws {
    for name in selections.keys where views[name] == nil || views[name]?.instance != before[name]?.instance {
      selections[name] = nil
    }
    for (name, tokens) in selections where !tokens.isEmpty { try checkSelection(name) }
  }

  private func checkSelection(_ name: String) throws {
    guard let view = views[name], let feed = try? harness.engine.catalog.feed(named: name) else { return }
    let tokens = Set(selections[name] ?? [])
    let paths = view.paths.filter { tokens.contains(view.sections[$0.section].rows[$0.row].token) }
      .map { [$0.section, $0.row] }
    selections[name] = paths.map { view.sections[$0[0]].rows[$0[1]].token }
    let found = feed.selection.map { [Int($0.section), Int($0.row)] }
    if found != paths { throw fail("\(found) of \(name) are selected, not \(paths)") }
    if (told[name] ?? []) != paths { throw fail("the watcher of \(name) received \(told[name] ?? []), not \(paths)") }
  }
}
