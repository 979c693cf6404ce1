import FeedChange
import FeedModel

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Watches without elements, and what `describe` tells of feeds.
extension TreeWorld {
  /// What a watch with `"elements": false` has told.
  struct Counts {
    var revision: Int
    var names: [String]
    var counts: [Int]

    init?(_ message: Value?) {
      guard let revision = message?["revision"]?.int, let sections = message?["sections"]?.items else { return nil }
      self.revision = revision
      names = sections.compactMap { $0["name"]?.string }
      counts = sections.compactMap { $0["count"]?.int }
    }
  }

  /// Watches the counts of a feed.
  func count(_ name: String) throws {
    let frames = harness.ask(counter, "watch", "{\"feed\":\"\(name)\",\"elements\":false}")
    guard frames.count == 1, let counts = Counts(Value(frames[0])?["result"]) else {
      throw fail("unexpected frames after a watch of counts: \(frames)")
    }
    counted[name] = counts
  }

  /// Applies the messages to the watcher of counts, and compares what it knows.
  func compareCounts() throws {
    for text in harness.take(counter) {
      guard let frame = Value(text), let params = frame["params"], let name = params["feed"]?.string,
        let known = counted[name]
      else { throw fail("an unexpected frame: \(text)") }
      switch frame["method"]?.string {
      case "bookmark": break
      case "snapshot" where params["reset"]?.bool == true: counted[name] = Counts(params)
      case "delta": counted[name] = params["ended"]?.bool == true ? nil : try apply(params, to: known)
      default: throw fail("an unexpected frame: \(text)")
      }
    }
    for (name, known) in counted {
      let sections = views[name]?.sections ?? []
      guard known.revision == mirrors[name]?.revision, known.names == sections.map(\.name),
        known.counts == sections.map(\.rows.count)
      else { throw fail("the counts of \(name) are \(known), not those of \(views[name]?.short ?? "nothing")") }
    }
  }

  private func apply(_ delta: Value, to known: Counts) throws -> Counts {
    let withheld = ["deleted", "added", "updated", "moves", "elements", "types"]
    guard delta["from"]?.int == known.revision, let revision = delta["revision"]?.int, revision > known.revision,
      let counts = delta["counts"], withheld.allSatisfy({ delta[$0] == nil })
    else { throw fail("unexpected counts after \(known): \(delta)") }
    var next = known
    Change(delta).applySections(to: &next.names) { $0.name }
    (next.revision, next.counts) = (revision, counts.path)
    return next
  }

  /// Compares what `describe` tells of a feed: its counts, and where its children are.
  func describe(_ name: String, _ view: TreeView) throws {
    let found = try ask("describe", "{\"feed\":\"\(name)\"}")["result"]
    let counts = view.sections.map(\.rows.count)
    guard found?["counts"]?.path == counts, found?["count"]?.int == counts.reduce(0, +),
      found?["sections"]?.items.map({ $0["name"]?.string }) == view.sections.map(\.name),
      found?["revision"]?.int == mirrors[name]?.revision, found?["shows"]?.text == shows(name)
    else { throw fail("\(name) is described as \(found as Any), not \(view.short) with \(shows(name) ?? "nothing")") }
  }

  /// The member `shows`: where the children of a feed are in it; nil for a feed that has none.
  private func shows(_ name: String) -> String? {
    guard let feed = reference.feeds[name] else { return nil }
    var entries: [String] = []
    if case .slots(let slots) = feed.definition.content {
      entries = slots.contents.map { "{\"feed\":\"\($0.feed)\",\"type\":\"\($0.type)\"}" }
    } else if let children = feed.children {
      var section = 0
      for child in children {
        let isShown = feed.shown.contains(child)
        entries.append("{\"feed\":\"\(child)\",\"section\":\(isShown ? "\(section)" : "null")}")
        if isShown { section += views[child]?.sections.count ?? 0 }
      }
    } else {
      return nil
    }
    return "[\(entries.joined(separator: ","))]"
  }
}
