import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Method `patch`: merges changes into elements (RFC 7396).
extension Engine {
  /// Merges all patches in order, then replaces each patched element once.
  func patch(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    switch feed.kind {
    case let collection as CollectionKind: try patch(collection, of: feed, parameters)
    case let list as ListKind where list.shape == .array: try patch(array: list, of: feed, parameters)
    case let list as ListKind: try patch(single: list, of: feed, parameters)
    default: throw refusal(of: feed, wanted: "collection, array or single")
    }
  }

  private func patch(_ collection: CollectionKind, of feed: Feed, _ parameters: Parameters) throws(FeedError) {
    let patches = try Patches(parameters, key: "id", "the identity of an element")
    var merged = MergedElements(limits)
    let path = collection.content.id
    for (index, patch) in patches.entries.enumerated() {
      guard let key = patch.key else { throw patches.missingKey(index) }
      guard let row = try catalog.find(key, in: feed)?.row else {
        throw .unknownIdentity(feed: feed.name, index: index, id: String(decoding: key.text, as: UTF8.self))
      }
      // The address of an element's text is stable until the element changes, so it identifies the element.
      try merged.merge(patch.value, into: row.text, key: Int(bitPattern: row.text.baseAddress)) {
        result throws(FeedError) in
        guard let identity = path.resolve(result) else {
          throw .noIdentity(feed: feed.name, index: index, path: path.text, found: "nothing")
        }
        // The update refuses a value that is no identity.
        let isIdentity = identity.kind == .string || identity.kind == .number
        if isIdentity && !identity.equals(key) { throw patches.changedIdentity(index) }
      }
    }
    try merged.withResults { elements throws(FeedError) in try collection.update(elements: elements, in: catalog.commit)
    }
  }

  private func patch(array list: ListKind, of feed: Feed, _ parameters: Parameters) throws(FeedError) {
    try checkAllowed(.patch, feed)
    let patches = try Patches(parameters, key: "at", "the row of an element")
    var merged = MergedElements(limits)
    let section = feed.section(at: 0)
    var rows: [Int] = []
    for (index, patch) in patches.entries.enumerated() {
      guard let key = patch.key else { throw patches.missingKey(index) }
      guard let row = key.int else {
        throw .invalidParams(member: patches.member("at", index), reason: "must be a whole number: a row from 0 on")
      }
      guard (0..<section.count).contains(row) else {
        throw .indexOutOfRange(feed: feed.name, index: row, count: section.count, what: "row")
      }
      if try merged.merge(patch.value, into: section.row(at: row).text, key: row) { rows.append(row) }
    }
    try merged.withResults { elements throws(FeedError) in
      try list.replace(Array(elements.elements), at: rows, in: catalog.commit)
    }
  }

  private func patch(single list: ListKind, of feed: Feed, _ parameters: Parameters) throws(FeedError) {
    for name in ["id", "at", "patches"] as [StaticString] where parameters.member(name) != nil {
      throw Parameters.refuse(name, "must not be given for a single, which has one element")
    }
    let patch = try parameters.required("patch", "the members to change")
    let section = feed.section(at: 0)
    guard section.count > 0 else {
      throw .indexOutOfRange(feed: feed.name, index: 0, count: 0, what: "row")
    }
    var merged = MergedElements(limits)
    try merged.merge(patch, into: section.row(at: 0).text, key: 0)
    try merged.withResults { elements throws(FeedError) in
      let element = elements.element(at: 0)
      try list.put(element?.isNull == true ? nil : element, in: catalog.commit)
    }
  }
}

/// The patches of a request: one, beside its key, or several in `patches`.
private struct Patches {
  private let key: StaticString
  private let what: StaticString
  private let isList: Bool
  let entries: [(key: JSONView?, value: JSONView)]

  init(_ parameters: Parameters, key: StaticString, _ what: StaticString) throws(FeedError) {
    self.key = key
    self.what = what
    try parameters.refuseBoth("patch", "patches")
    try parameters.refuseBoth(key, "patches")
    isList = parameters.member("patches") != nil
    guard isList else {
      entries = [(parameters.member(key), try parameters.required("patch", "the members to change, or \"patches\""))]
      return
    }
    var entries: [(key: JSONView?, value: JSONView)] = []
    for (index, entry) in try parameters.array("patches", "an array of patches").elements.enumerated() {
      guard entry.kind == .object, let value = entry.member("patch") else {
        throw .invalidParams(member: "patches[\(index)]", reason: "must be an object with \"\(key)\" and \"patch\"")
      }
      entries.append((entry.member(key), value))
    }
    self.entries = entries
  }

  /// The path of a member of a patch.
  func member(_ name: StaticString, _ index: Int) -> String { isList ? "patches[\(index)].\(name)" : "\(name)" }

  func missingKey(_ index: Int) -> FeedError {
    .invalidParams(member: member(key, index), reason: "is missing: give \(what)")
  }

  func changedIdentity(_ index: Int) -> FeedError {
    .invalidParams(
      member: member("patch", index), reason: "must not change the identity; delete the element and push another")
  }
}

/// Elements and their merged texts, each once, in the order of their first patch.
private struct MergedElements: ~Copyable {
  private let limits: Limits
  private var texts: [[UInt8]] = []
  private var indices: [Int: Int] = [:]
  private var scanner: JSONScanner

  init(_ limits: Limits) {
    self.limits = limits
    scanner = JSONScanner(maxDepth: limits.maxDepth + 1)
  }

  /// Merges a patch into an element, or into the result of earlier patches of the request.
  ///
  /// - Parameters:
  ///   - key: identifies the element among those of the request.
  ///   - check: validates the result.
  /// - Returns: whether this is the first patch of the element.
  @discardableResult
  mutating func merge(
    _ patch: JSONView, into text: UnsafeRawBufferPointer, key: Int,
    _ check: (JSONView) throws(FeedError) -> Void = { _ in }
  ) throws(FeedError) -> Bool {
    var merged = ByteBuffer()
    let known = indices[key]
    if let known {
      var before = ByteBuffer()
      texts[known].withUnsafeBytes { before.append($0) }
      MergePatch.apply(patch, to: try scan(before.bytes), into: &merged)
    } else {
      MergePatch.apply(patch, to: try scan(text), into: &merged)
    }
    try check(try scan(merged.bytes))
    if let known {
      texts[known] = Array(merged.bytes)
      return false
    }
    indices[key] = texts.count
    texts.append(Array(merged.bytes))
    return true
  }

  /// Calls `body` with the results as an array.
  mutating func withResults(_ body: (JSONView) throws(FeedError) -> Void) throws(FeedError) {
    var array = ByteBuffer()
    array.append(UInt8(ascii: "["))
    for (place, text) in texts.enumerated() {
      if place > 0 { array.append(UInt8(ascii: ",")) }
      text.withUnsafeBytes { array.append($0) }
    }
    array.append(UInt8(ascii: "]"))
    try body(try scan(array.bytes))
  }

  /// An element stored under other limits may nest deeper than `maxDepth`.
  private mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(FeedError) -> JSONView {
    do throws(JSONError) {
      return try scanner.scan(bytes)
    } catch {
      throw .limitExceeded(
        limit: "maxDepth", value: limits.maxDepth, reason: "the patched element cannot be read: \(error.message)")
    }
  }
}
