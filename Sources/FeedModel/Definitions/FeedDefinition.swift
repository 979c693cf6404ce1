import FeedChange
import FeedJSON
import FeedQuery

/// The definition of a feed: its name, its content and the operations that it allows (Protocol/README.md, "Definitions").
///
///     let definition = try FeedDefinition(parsing: params, limits: Limits())
public struct FeedDefinition: Equatable, Sendable {
  public enum Content: Equatable, Sendable {
    case collection(CollectionDefinition)
    case list(ListDefinition)
    case composed(children: [String])
    /// `current` is the index of the active child; -1 if no child is active.
    case segmented(children: [String], current: Int)
    case slots(SlotsDefinition)
    case view(ViewDefinition)
    /// Allowed only in the daemon's configuration.
    case managed(ManagedDefinition)
  }

  public let name: String
  public let content: Content
  public let behaviours: Behaviours

  public var kind: String {
    switch content {
    case .collection: "collection"
    case .list(let list): list.shape.rawValue
    case .composed: "composed"
    case .segmented: "segmented"
    case .slots: "slots"
    case .view: "view"
    case .managed: "managed"
    }
  }

  /// The names of all kinds. `managed` is allowed only in the daemon's configuration.
  public static let kinds = ["array", "collection", "composed", "managed", "segmented", "single", "slots", "view"]

  public init(name: String, content: Content, behaviours: Behaviours = Behaviours()) {
    (self.name, self.content, self.behaviours) = (name, content, behaviours)
  }
}

extension FeedDefinition.Content {
  /// The names of the feeds and bins whose rows the feed contains.
  public var shown: [String] {
    switch self {
    case .composed(let children), .segmented(let children, _): children
    case .slots(let slots): slots.contents.map(\.feed)
    case .view(let view): [view.of]
    case .collection, .list, .managed: []
    }
  }
}

extension FeedDefinition {
  /// Reads the parameters of `define` (Protocol/README.md, "Definitions"), but not unknown members; see `KnownMembers`.
  /// - Parameter defaultKind: the kind of a definition that names none; nil if it must name one.
  /// - Throws: `invalidParams` with the name of the member, `badQuery` with the offset of the error in a filter or path, or
  ///   `limitExceeded`.
  public init(parsing object: JSONView, limits: Limits, defaultKind: String? = nil) throws(FeedError) {
    guard object.kind == .object else {
      throw .invalidParams(member: "params", reason: "must be an object that describes a feed")
    }
    let reader = DefinitionReader(object: object, place: "")
    let name = try reader.name("feed")
    let kinds = FeedDefinition.kinds.joined(separator: ", ")
    let given = try reader.string("kind", atMost: FeedName.maxLength, else: "must be one of \(kinds)")
    guard let kind = given ?? defaultKind else { throw reader.refuse("kind", "is missing; give one of \(kinds)") }
    let behaviours = try Behaviours(reading: reader)
    self.init(name: name, content: try Content(kind: kind, reading: reader, limits: limits), behaviours: behaviours)
  }
}

extension FeedDefinition.Content {
  fileprivate init(kind: String, reading reader: DefinitionReader, limits: Limits) throws(FeedError) {
    switch kind {
    case "collection": self = .collection(try CollectionDefinition(reading: reader, limits: limits))
    case "array": self = .list(try ListDefinition(array: reader))
    case "single": self = .list(ListDefinition(shape: .single, type: try reader.singularPath("type")))
    case "composed": self = .composed(children: try reader.feedNames("children") ?? [])
    case "segmented":
      let children = try reader.feedNames("children") ?? []
      let current = try reader.integer("current") ?? 0
      self = .segmented(children: children, current: min(max(current, -1), children.count - 1))
    case "slots": self = .slots(try SlotsDefinition(reading: reader))
    case "view": self = .view(try ViewDefinition(reading: reader, limits: limits))
    case "managed": self = .managed(try ManagedDefinition(reading: reader))
    default:
      throw reader.refuse("kind", "is \"\(kind)\"; give one of \(FeedDefinition.kinds.joined(separator: ", "))")
    }
  }
}

extension Behaviours {
  fileprivate init(reading reader: DefinitionReader) throws(FeedError) {
    self.init()
    selectable = try reader.bool("selectable", default: selectable)
    multiple = try reader.bool("multiple", default: multiple)
    editable = try reader.bool("editable", default: editable)
    movable = try reader.bool("movable", default: movable)
  }
}

extension FeedDefinition {
  /// Appends the members of the definition without braces, defaults included. Reading them gives an equal definition.
  public func appendMembers(to out: inout ByteBuffer) {
    out.append("\"feed\":", quoted: name)
    out.append(",\"kind\":", quoted: kind)
    switch content {
    case .collection(let collection): collection.appendMembers(to: &out)
    case .list(let list):
      if let id = list.id { out.append(",\"id\":", quoted: id.text) }
      if let type = list.type { out.append(",\"type\":", quoted: type.text) }
      list.retain?.append(to: &out)
    case .composed(let children): out.append(member: "children", children)
    case .segmented(let children, let current):
      out.append(member: "children", children)
      out.append(",\"current\":", integer: current)
    case .slots(let slots): slots.appendMembers(to: &out)
    case .view(let view): view.appendMembers(to: &out)
    case .managed(let managed): managed.appendMembers(to: &out)
    }
    behaviours.appendMembers(to: &out)
  }
}

extension Behaviours {
  /// Appends the members that differ from their defaults.
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    let defaults = Behaviours()
    if selectable != defaults.selectable { out.append(selectable ? ",\"selectable\":true" : ",\"selectable\":false") }
    if multiple != defaults.multiple { out.append(multiple ? ",\"multiple\":true" : ",\"multiple\":false") }
    if editable != defaults.editable { out.append(editable ? ",\"editable\":true" : ",\"editable\":false") }
    if movable != defaults.movable { out.append(movable ? ",\"movable\":true" : ",\"movable\":false") }
  }
}

extension ManagedDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"database\":", quoted: database)
    out.append(",\"query\":", quoted: query)
    out.append(",\"id\":", quoted: id)
    if let section { out.append(",\"section\":", quoted: section) }
    if let type { out.append(",\"type\":", quoted: type.text) }
  }
}

extension SlotsDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"contents\":{")
    for (place, content) in contents.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(content.type)
      out.append(UInt8(ascii: ":"))
      out.appendJSONString(content.feed)
    }
    out.append(UInt8(ascii: "}"))
    out.append(member: "pattern", pattern)
    if !repeatables.isEmpty { out.append(member: "repeatables", repeatables) }
    if !header.isEmpty { out.append(member: "header", header) }
    if let defaultType { out.append(",\"default\":", quoted: defaultType) }
    if types != .content { out.append(",\"types\":", quoted: types.rawValue) }
    if fixed.isEmpty { return }
    out.append(",\"fixed\":{")
    for (place, entry) in fixed.enumerated() {
      out.append(place > 0 ? ",\"" : "\"", integer: entry.position)
      out.append("\":", quoted: entry.type)
    }
    out.append(UInt8(ascii: "}"))
  }
}

extension CollectionDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"id\":", quoted: id.text)
    if let type { out.append(",\"type\":", quoted: type.text) }
    out.append(exclusive ? ",\"exclusive\":true" : ",\"exclusive\":false")
    out.append(",\"bins\":[")
    for (index, bin) in bins.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      bin.append(to: &out)
    }
    out.append(UInt8(ascii: "]"))
    if let section {
      out.append(",\"section\":", quoted: section.by.text)
      if section.descending { out.append(",\"sectionOrder\":\"descending\"") }
    }
    retain?.append(to: &out)
  }
}

extension CollectionDefinition.Bin {
  fileprivate func append(to out: inout ByteBuffer) {
    out.append("{\"name\":", quoted: name)
    if let filter { out.append(",\"filter\":", quoted: filter.text) }
    if !sort.isEmpty { out.append(sort: sort) }
    out.append(UInt8(ascii: "}"))
  }
}

extension ViewDefinition {
  /// Appends the members that differ from their defaults.
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"of\":", quoted: of)
    if let filter { out.append(",\"filter\":", quoted: filter.text) }
    if !sort.isEmpty { out.append(sort: sort) }
    if window.offset > 0 { out.append(",\"offset\":", integer: window.offset) }
    if let limit = window.limit { out.append(",\"limit\":", integer: limit) }
  }
}

extension Retention {
  fileprivate func append(to out: inout ByteBuffer) {
    out.append(",\"retain\":{")
    var isFirst = true
    func name(_ member: StaticString) {
      out.append(isFirst ? "\"" : ",\"")
      out.append(member)
      out.append("\":")
      isFirst = false
    }
    if let count {
      name("count")
      out.append(integer: count)
    }
    if let seconds {
      name("seconds")
      out.append(number: seconds)
    }
    if let until {
      name("until")
      out.appendJSONString(until.text)
    }
    out.append(UInt8(ascii: "}"))
  }
}

extension ByteBuffer {
  fileprivate mutating func append(sort terms: [CollectionDefinition.SortTerm]) {
    append(",\"sort\":[")
    for (index, term) in terms.enumerated() {
      append(index > 0 ? ",{\"by\":" : "{\"by\":", quoted: term.by.text)
      append(term.descending ? ",\"order\":\"descending\"}" : ",\"order\":\"ascending\"}")
    }
    append(UInt8(ascii: "]"))
  }

  fileprivate mutating func append(member name: StaticString, _ values: [String]) {
    append(",\"")
    append(name)
    append("\":[")
    appendJSONStrings(values)
    append(UInt8(ascii: "]"))
  }

  /// Appends a finite number, without a fraction if it is an integer.
  fileprivate mutating func append(number: Double) {
    precondition(number.isFinite, "JSON has no such number")
    if let whole = Int(exactly: number) {
      append(integer: whole)
    } else {
      append(string: "\(number)")
    }
  }
}

/// The operations that a feed allows on its rows (Protocol/README.md, "Definitions").
public struct Behaviours: Equatable, Sendable {
  public var selectable = true
  /// Whether several rows can be selected at a time. If not, a new selection replaces the previous one.
  public var multiple = true
  /// Whether elements can be inserted, removed and replaced.
  public var editable = true
  public var movable = true

  public init() {}
}

/// The definition of an `array` or a `single` feed (Protocol/README.md, "Arrays and singles").
///
/// Invariant: a single has no identity path and no retention.
public struct ListDefinition: Equatable, Sendable {
  public let shape: ListKind.Shape
  /// The path of an element's identity, if elements have identities.
  public let id: SingularPath?
  /// The path of an element's type, if elements have types.
  public let type: SingularPath?
  public let retain: Retention?

  init(shape: ListKind.Shape, id: SingularPath? = nil, type: SingularPath?, retain: Retention? = nil) {
    assert(shape == .array || id == nil && retain == nil, "a single has no identity and no retention")
    (self.shape, self.id, self.type, self.retain) = (shape, id, type, retain)
  }

  fileprivate init(array reader: DefinitionReader) throws(FeedError) {
    self.init(
      shape: .array, id: try reader.singularPath("id"), type: try reader.singularPath("type"),
      retain: try Retention(reading: reader))
  }
}
