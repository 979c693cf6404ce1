import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
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
    let patches = try Patches(parameters, keys: [.id], "the identity of an element")
    var merged = MergedElements(limits, commit)
    var condition = try elementRequirement(parameters, on: feed)
    let path = collection.content.id
    for (index, patch) in patches.entries.enumerated() {
      let key = patch.key
      guard let row = try catalog.find(key, index: index, in: feed)?.row else {
        throw .unknownIdentity(feed: feed.name, index: index, id: String(decoding: key.text, as: UTF8.self))
      }
      try condition?.check(row, at: index, NamedElement(id: key))
      // The address of an element's text is stable until the element changes, so it identifies the element.
      try merged.merge(patch.value, into: row.text, key: Int(bitPattern: row.text.baseAddress)) {
        result throws(FeedError) in try patches.checkIdentity(of: result, path, is: key, index, feed)
      }
    }
    try merged.withResults { elements throws(FeedError) in try collection.update(elements: elements, in: commit)
    }
  }

  private func patch(array list: ListKind, of feed: Feed, _ parameters: Parameters) throws(FeedError) {
    try checkAllowed(.patch, feed)
    let path = list.identityPath
    let patches = try Patches(
      parameters, keys: path == nil ? [.at] : [.id, .at],
      path == nil ? "the row of an element" : "the identity of an element, or its row as \"at\"")
    var merged = MergedElements(limits, commit)
    let section = feed.section(at: 0)
    var rows: [Int] = []
    var condition = try elementRequirement(parameters, on: feed)
    var scanner = JSONScanner(maxDepth: limits.maxDepth + 1)
    for (index, patch) in patches.entries.enumerated() {
      let row = try patches.row(patch, index, list, feed)
      let element = section.row(at: row).text
      try condition?.check(
        section.row(at: row), at: index,
        patch.member == .id ? NamedElement(id: patch.key) : .row(row, id: list.identity(of: element)))
      let isFirst = try merged.merge(patch.value, into: element, key: row) { result throws(FeedError) in
        guard let path, let before = try? scanner.scan(element), let id = path.resolve(before) else { return }
        try patches.checkIdentity(of: result, path, is: id, index, feed)
      }
      if isFirst { rows.append(row) }
    }
    try merged.withResults { elements throws(FeedError) in
      try list.replace(Array(elements.elements), at: rows, in: commit)
    }
  }

  private func patch(single list: ListKind, of feed: Feed, _ parameters: Parameters) throws(FeedError) {
    for name in ["id", "at", "patches"] as [StaticString] where parameters.member(name) != nil {
      throw Parameters.refuse(name, "must not be given for a single, which has one element")
    }
    let patch = try parameters.required("patch", "the members to change")
    let section = feed.section(at: 0)
    guard section.count > 0 else {
      throw .indexOutOfRange(feed: feed.name, place: section.name, index: 0, count: 0, what: .row)
    }
    var condition = try elementRequirement(parameters, on: feed)
    try condition?.check(section.row(at: 0), at: 0, .only)
    var merged = MergedElements(limits, commit)
    try merged.merge(patch, into: section.row(at: 0).text, key: 0)
    try merged.withResults { elements throws(FeedError) in
      let element = elements.element(at: 0)
      try list.put(element?.isNull == true ? nil : element, in: commit)
    }
  }
}

/// The patches of a request: one, beside its key, or several in `patches`.
private struct Patches {
  /// A member that identifies an element.
  enum Key: CaseIterable {
    case id
    case at

    var name: StaticString { self == .id ? "id" : "at" }
  }

  struct Entry {
    /// The member that identifies the element, and its value.
    let member: Key
    let key: JSONView
    let value: JSONView
  }

  private let isList: Bool
  let entries: [Entry]

  /// - Parameters:
  ///   - keys: the members that may identify an element. A patch must have exactly one of them.
  ///   - what: describes the keys in errors.
  init(_ parameters: Parameters, keys: [Key], _ what: StaticString) throws(FeedError) {
    try parameters.refuseBoth("patch", "patches")
    for key in Key.allCases { try parameters.refuseBoth(key.name, "patches") }
    isList = parameters.member("patches") != nil
    func entry(_ object: JSONView?, _ value: JSONView, at place: String) throws(FeedError) -> Entry {
      let given = Key.allCases.filter { object?.member($0.name) != nil }
      guard given.count < 2 else {
        throw .invalidParams(member: "\(place)\(given[1].name)", reason: Parameters.exclusion(of: "\(given[0].name)"))
      }
      guard let member = given.first, let key = object?.member(member.name) else {
        throw .invalidParams(member: "\(place)\(keys[0].name)", reason: "is missing: give \(what)")
      }
      guard keys.contains(member) else {
        throw .invalidParams(member: "\(place)\(member.name)", reason: "has no meaning here: give \(what)")
      }
      return Entry(member: member, key: key, value: value)
    }
    guard isList else {
      let value = try parameters.required("patch", "the members to change, or \"patches\"")
      entries = [try entry(parameters.object, value, at: "")]
      return
    }
    var entries: [Entry] = []
    for (index, object) in try parameters.array("patches", "an array of patches").elements.enumerated() {
      guard object.kind == .object, let value = object.member("patch") else {
        throw .invalidParams(
          member: "patches[\(index)]", reason: "must be an object with \"\(keys[0].name)\" and \"patch\"")
      }
      entries.append(try entry(object, value, at: "patches[\(index)]."))
    }
    self.entries = entries
  }

  /// Returns the row of the element that a patch of an array names.
  func row(_ entry: Entry, _ index: Int, _ list: ListKind, _ feed: Feed) throws(FeedError) -> Int {
    if entry.member == .id {
      guard let row = try list.find(entry.key, index: index)?.places.first?.row else {
        throw .unknownIdentity(feed: feed.name, index: index, id: String(decoding: entry.key.text, as: UTF8.self))
      }
      return Int(row)
    }
    guard let row = entry.key.int else {
      throw .invalidParams(member: member("at", index), reason: "must be an integer: a row from 0 on")
    }
    return Int(try feed.path(section: 0, row: row).row)
  }

  /// Throws if a patched element has another identity than before.
  func checkIdentity(
    of result: JSONView, _ path: SingularPath, is key: JSONView, _ index: Int, _ feed: Feed
  ) throws(FeedError) {
    guard let identity = path.resolve(result) else {
      throw .noIdentity(feed: feed.name, index: index, path: path.text, found: "missing")
    }
    // The change refuses a value that is no identity.
    guard identity.kind == .string || identity.kind == .number, !identity.equals(key) else { return }
    throw .invalidParams(
      member: member("patch", index), reason: "must not change the identity; delete the element and push another")
  }

  /// The path of a member of a patch.
  private func member(_ name: StaticString, _ index: Int) -> String { isList ? "patches[\(index)].\(name)" : "\(name)" }
}

/// Elements and their merged texts, each once, in the order of their first patch.
private struct MergedElements: ~Copyable {
  private let limits: Limits
  /// Charged for the merging, which may stop for its pace.
  private let commit: Commit
  private var texts: [[UInt8]] = []
  private var indices: [Int: Int] = [:]
  private var scanner: JSONScanner

  init(_ limits: Limits, _ commit: Commit) {
    (self.limits, self.commit) = (limits, commit)
    scanner = JSONScanner(maxDepth: limits.maxDepth + 1)
  }

  /// Merges a patch into an element, or into the result of earlier patches of the request.
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
    try commit.useSteps(mergingBytes: known.map { texts[$0].count } ?? text.count)
    if let known {
      var before = ByteBuffer()
      texts[known].withUnsafeBytes { before.append($0) }
      MergePatch.apply(patch, to: try scan(before.bytes), into: &merged, step: commit.pace.didReadMembers)
    } else {
      MergePatch.apply(patch, to: try scan(text), into: &merged, step: commit.pace.didReadMembers)
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
      return try scanner.scan(bytes, commit.pace)
    } catch {
      throw .limitExceeded(
        limit: "maxDepth", value: limits.maxDepth,
        reason: "the patched element cannot be read: \(error.message); start feedd with a larger --max-depth")
    }
  }
}
