import FeedJSON
import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// A collection and its reference, which execute the same operations.
final class CollectionPair {
  /// An operation with its JSON arguments.
  enum Operation: CustomStringConvertible {
    case update([String])
    case delete([String])
    case set([String])
    case redefine(CollectionRules)

    var description: String {
      switch self {
      case .update(let texts): "update \(texts)"
      case .delete(let ids): "delete \(ids)"
      case .set(let texts): "set \(texts)"
      case .redefine(let rules): "define \(rules.definition)"
      }
    }
  }

  let catalog: Catalog
  private(set) var reference: CollectionReference
  /// Whether the current commit redefines the collection. Its published change may then list more rows than necessary.
  private(set) var isRedefining = false
  private var isFirst = true
  /// Marks the feeds whose changes are to be published.
  let watched = Watched()
  var now: UInt64 = 1_000_000_000

  init(_ rules: CollectionRules, seed: UInt64 = 1) throws {
    catalog = Catalog(limits: Limits(), seed: seed)
    reference = CollectionReference(rules)
    catalog.begin(at: instant)
    try define(rules, replace: false)
    catalog.finish()
  }

  private var instant: Instant { Instant(nanoseconds: now) }
  var feed: Feed { get throws { try catalog.feed(named: "c") } }
  var collection: CollectionKind { get throws { try catalog.collection(named: "c") } }

  /// Begins a commit of the collection and its bins, all of which are watched.
  func begin() throws {
    catalog.begin(at: instant)
    isRedefining = false
    isFirst = true
    for feed in try [feed] + feed.kind.bins {
      feed.beginHistory()
      feed.channel = watched
    }
  }

  private func define(_ rules: CollectionRules, replace: Bool) throws {
    try withView(rules.definition) { view in
      try catalog.define(try FeedDefinition(parsing: view, limits: catalog.limits), replace: replace)
    }
  }

  /// Executes an operation on both within the current commit. Either both or neither must refuse it, and the resulting change
  /// must obey the rules.
  func apply(_ operation: Operation) throws {
    reference.begin(isFirst: isFirst)
    isFirst = false
    let before = reference
    let isRefused = (try? follow(operation)) == nil
    if isRefused { reference = before }
    let mark = catalog.commit.log.position
    do {
      try execute(operation)
      if isRefused { throw Mismatch("\(operation) should have been refused") }
    } catch let error as FeedError {
      if !isRefused { throw Mismatch("\(operation): \(error)") }
      // In a transaction the caller rolls back; a single operation must have rolled back itself.
      if case .redefine = operation { catalog.commit.undo(to: mark) }
      try compare(after: operation, from: before)
      return
    }
    try compare(after: operation, from: before)
    try check(
      catalog.commit.result, from: before, "\(operation)", isSingle: operation.isSingle, isPaired: operation.isPaired)
  }

  private func compare(after operation: Operation, from before: CollectionReference) throws {
    do { try compare() } catch { throw Mismatch("\(error), after \(operation) on \(before.elements.map(\.text))") }
  }

  private func follow(_ operation: Operation) throws {
    switch operation {
    case .update(let texts):
      for text in texts { try reference.update(text, at: now) }
      reference.evict()
    case .delete(let ids): for id in ids { try reference.delete(id) }
    case .set(let texts):
      try reference.set(texts, at: now)
      reference.evict()
    case .redefine(let rules): try reference.redefine(rules)
    }
  }

  private func execute(_ operation: Operation) throws {
    switch operation {
    case .update(let texts) where texts.count == 1:
      try withView(texts[0]) { try collection.update($0, in: catalog.commit) }
    case .update(let texts): try withView(list(texts)) { try collection.update(elements: $0, in: catalog.commit) }
    case .delete(let ids) where ids.count == 1: try withView(ids[0]) { try collection.delete($0, in: catalog.commit) }
    case .delete(let ids): try withView(list(ids)) { try collection.delete(ids: $0, in: catalog.commit) }
    case .set(let texts): try withView(list(texts)) { try collection.set($0, in: catalog.commit) }
    case .redefine(let rules):
      isRedefining = true
      try define(rules, replace: true)
    }
  }

  private func list(_ texts: [String]) -> String { "[" + texts.joined(separator: ", ") + "]" }

  /// Evicts expired elements from both in a commit of its own.
  func expire() throws {
    let before = reference
    reference.evictExpired(at: now)
    catalog.begin(at: instant)
    let evicted = catalog.evictExpired(of: try catalog.feed(named: "c"), limit: 1000)
    expectEqual(evicted, before.elements.count - reference.elements.count)
    try compare()
    try check(catalog.commit.result, from: before, "expiry")
    catalog.finish()
  }

  /// Restores the reference, like the undo log restores the collection.
  func restore(_ earlier: CollectionReference) { reference = earlier }
}

final class Watched {}

/// A difference between the collection and the reference.
struct Mismatch: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

extension CollectionPair.Operation {
  /// Whether at most one element is affected, so that the change must be minimal.
  fileprivate var isSingle: Bool {
    switch self {
    case .update(let texts): texts.count == 1
    case .delete(let ids): ids.count == 1
    case .set: false
    case .redefine: true
    }
  }

  /// Whether the change must pair moved rows.
  fileprivate var isPaired: Bool {
    if case .redefine = self { return false }
    return true
  }
}
