/// A definition of any kind, as far as the random trees vary it.
struct TreeDefinition: Equatable {
  enum Content: Equatable {
    case list(TreeList)
    case collection(TreeCollection)
    case composed([String])
    case segmented([String], current: Int)
    case slots(TreeSlots)
    case view(TreeWindow)
    case managed(TreeManaged)
  }

  var name: String
  var content: Content
  var selectable = true
  var multiple = true
  var editable = true
  var movable = true

  var kind: String {
    switch content {
    case .list(let list): list.isSingle ? "single" : "array"
    case .collection: "collection"
    case .composed: "composed"
    case .segmented: "segmented"
    case .slots: "slots"
    case .view: "view"
    case .managed: "managed"
    }
  }

  /// The feeds whose rows it shows.
  var sources: [String] {
    switch content {
    case .list, .collection, .managed: []
    case .composed(let children), .segmented(let children, _): children
    case .slots(let slots): slots.contents.map(\.feed)
    case .view(let view): [view.of]
    }
  }

  /// The members of the definition as the daemon shows them, defaults included.
  var canonical: String { members(replace: false, canonical: true) }

  /// The members of the definition.
  func members(replace: Bool, canonical: Bool = false) -> String {
    var parts = ["\"feed\":\"\(name)\"", "\"kind\":\"\(kind)\""]
    switch content {
    case .list(let list): parts += list.members
    case .collection(let collection): parts += canonical ? collection.canonicalMembers : collection.members
    case .composed(let children): parts.append("\"children\":\(children.json)")
    case .segmented(let children, let current):
      parts += ["\"children\":\(children.json)", "\"current\":\(current)"]
    case .slots(let slots): parts += slots.members
    case .view(let view): parts += view.members
    case .managed(let managed): parts += managed.members
    }
    if !selectable { parts.append("\"selectable\":false") }
    if !multiple { parts.append("\"multiple\":false") }
    if !editable { parts.append("\"editable\":false") }
    if !movable { parts.append("\"movable\":false") }
    if replace { parts.append("\"replace\":true") }
    return "{" + parts.joined(separator: ",") + "}"
  }
}

/// What an array or a single is made of.
struct TreeList: Equatable {
  var isSingle = false
  var type: String?
  /// Whether elements have the identity `$.id`.
  var hasID = false
  var retain: TreeRetention?

  var members: [String] {
    var parts: [String] = []
    if hasID { parts.append("\"id\":\"$.id\"") }
    if let type { parts.append("\"type\":\"\(type)\"") }
    if let retain { parts.append(retain.member) }
    return parts
  }
}

/// Which elements an array or a collection keeps.
struct TreeRetention: Equatable {
  var count: Int?
  var seconds: Int?
  var hasTimes = false

  /// Whether elements leave as time goes by.
  var isTimed: Bool { seconds != nil || hasTimes }

  var member: String {
    var parts: [String] = []
    if let count { parts.append("\"count\":\(count)") }
    if let seconds { parts.append("\"seconds\":\(seconds)") }
    if hasTimes { parts.append("\"until\":\"$.x\"") }
    return "\"retain\":{" + parts.joined(separator: ",") + "}"
  }

  /// Whether an element that changed at a moment is no longer kept. A commit takes less than a millisecond.
  func isOver(_ element: TreeElement, changed: Int, at now: Int) -> Bool {
    if let seconds, changed + seconds * 1000 <= now { return true }
    guard hasTimes, let x = element.x else { return false }
    return x <= now
  }
}

/// What a collection is made of.
struct TreeCollection: Equatable {
  struct Bin: Equatable {
    var name: String
    var filter: TreeFilter
    /// A member and a direction; nil keeps the order of arrival.
    var sort: Sort?
  }

  struct Sort: Equatable {
    var member: String
    var isDescending: Bool

    /// Whether `b` stands after `a`: absent comes last in either direction, as it is in a row of `$feeds`.
    func isBefore(_ a: TreeElement?, _ b: TreeElement?) -> Bool {
      switch (a, b) {
      case (let a?, let b?): isBefore(a, b)
      case (let a?, nil): a.number(member) != nil
      default: false
      }
    }

    /// Whether `b` stands after `a`: absent comes last in either direction.
    func isBefore(_ a: TreeElement, _ b: TreeElement) -> Bool {
      switch (a.number(member), b.number(member)) {
      case (let x?, let y?): isDescending ? x > y : x < y
      case (_?, nil): true
      default: false
      }
    }
  }

  /// What divides the elements into sections by value.
  struct Section: Equatable {
    /// `v`, `n` or `k`.
    var member: String
    var isDescending: Bool

    /// The value of an element as the name of its section behind the feed's; empty for none.
    func name(_ element: TreeElement) -> String {
      member == "k" ? element.k ?? "" : element.number(member).map { "\($0)" } ?? ""
    }

    /// Whether the section of one name comes before that of another. The values of a member are of one kind and short.
    func isBefore(_ a: String, _ b: String) -> Bool {
      if a.isEmpty || b.isEmpty { return !a.isEmpty }
      return isDescending ? a > b : a < b
    }
  }

  var bins: [Bin]
  var section: Section?
  var isExclusive = false
  var type: String?
  var retain: TreeRetention?

  /// The members as the daemon shows them, defaults included.
  var canonicalMembers: [String] {
    var parts = ["\"id\":\"$.id\""]
    if let type { parts.append("\"type\":\"\(type)\"") }
    parts += ["\"exclusive\":\(isExclusive)", members[0]]
    if let section {
      parts.append("\"section\":\"$.\(section.member)\"")
      if section.isDescending { parts.append("\"sectionOrder\":\"descending\"") }
    }
    if let retain { parts.append(retain.member) }
    return parts
  }

  var members: [String] {
    let bins = bins.map { bin in
      let filter = bin.filter.text.map { ",\"filter\":\"\($0)\"" } ?? ""
      let order = bin.sort.map { $0.isDescending ? "descending" : "ascending" } ?? ""
      let sort = bin.sort.map { ",\"sort\":[{\"by\":\"$.\($0.member)\",\"order\":\"\(order)\"}]" } ?? ""
      return "{\"name\":\"\(bin.name)\"\(filter)\(sort)}"
    }
    var parts = ["\"bins\":[\(bins.joined(separator: ","))]"]
    if isExclusive { parts.append("\"exclusive\":true") }
    if let section {
      let order = section.isDescending ? "descending" : "ascending"
      parts += ["\"section\":\"$.\(section.member)\"", "\"sectionOrder\":\"\(order)\""]
    }
    if let type { parts.append("\"type\":\"\(type)\"") }
    if let retain { parts.append(retain.member) }
    return parts
  }
}

/// What a managed feed is made of: the columns of its query.
struct TreeManaged: Equatable {
  var query: String
  /// The column with the identity: `id` or `v`.
  var id: String
  /// The column that names the sections: `k` or `n`; nil for one section.
  var section: String?
  var type: String?

  var members: [String] {
    var parts = ["\"database\":\"d\"", "\"query\":\"\(query)\"", "\"id\":\"\(id)\""]
    if let section { parts.append("\"section\":\"\(section)\"") }
    if let type { parts.append("\"type\":\"\(type)\"") }
    return parts
  }

  /// The identity of a row; nil for one that has none.
  func identity(_ element: TreeElement) -> Int? { id == "v" ? element.v : element.id }

  /// The value of a row's section column; empty for none.
  func value(_ element: TreeElement) -> String {
    switch section {
    case "k": element.k ?? ""
    case "n": "\(element.n)"
    default: ""
    }
  }
}

/// What a slots feed is made of.
struct TreeSlots: Equatable {
  struct Content: Equatable {
    var type: String
    var feed: String
  }

  var contents: [Content]
  var pattern: [String]
  var repeatables: [String] = []
  var header: [String] = []
  var defaultType: String?
  var fixed: [Int: String] = [:]
  /// Whether rows have their own types.
  var showsOwnTypes = false

  var members: [String] {
    let contents = contents.map { "\"\($0.type)\":\"\($0.feed)\"" }.joined(separator: ",")
    var parts = ["\"contents\":{\(contents)}", "\"pattern\":\(pattern.json)"]
    if !repeatables.isEmpty { parts.append("\"repeatables\":\(repeatables.json)") }
    if !header.isEmpty { parts.append("\"header\":\(header.json)") }
    if let defaultType { parts.append("\"default\":\"\(defaultType)\"") }
    if showsOwnTypes { parts.append("\"types\":\"element\"") }
    if !fixed.isEmpty {
      let entries = fixed.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }
      parts.append("\"fixed\":{\(entries.joined(separator: ","))}")
    }
    return parts
  }
}

/// What a view is made of.
struct TreeWindow: Equatable {
  var of: String
  var filter: TreeFilter = .everything
  var sort: TreeCollection.Sort?
  var offset = 0
  var limit: Int?

  var members: [String] {
    var parts = ["\"of\":\"\(of)\""]
    if let text = filter.text { parts.append("\"filter\":\"\(text)\"") }
    if let sort {
      let order = sort.isDescending ? "descending" : "ascending"
      parts.append("\"sort\":[{\"by\":\"$.\(sort.member)\",\"order\":\"\(order)\"}]")
    }
    if offset > 0 { parts.append("\"offset\":\(offset)") }
    if let limit { parts.append("\"limit\":\(limit)") }
    return parts
  }

  /// The rows that show of those of the source.
  func rows(_ source: [TreeRow]) -> [TreeRow] {
    var rows = source.filter { row in row.element.map(filter.accepts) ?? (filter == .everything) }
    if let sort {
      rows = rows.enumerated().sorted { a, b in
        sort.isBefore(a.element.element, b.element.element)
          || !sort.isBefore(b.element.element, a.element.element) && a.offset < b.offset
      }.map(\.element)
    }
    return Array(rows.dropFirst(offset).prefix(limit ?? .max))
  }
}

/// A filter, both as the daemon reads it and as the reference judges.
enum TreeFilter: CaseIterable {
  case everything, low, high, middle, isA, odd

  var text: String? {
    switch self {
    case .everything: nil
    case .low: "@.v < 5"
    case .high: "@.v >= 5"
    case .middle: "@.v >= 3 && @.v < 7"
    case .isA: "@.k == 'A'"
    case .odd: "@.n == 1 || @.n == 3"
    }
  }

  func accepts(_ element: TreeElement) -> Bool {
    switch self {
    case .everything: true
    case .low: element.v.map { $0 < 5 } ?? false
    case .high: element.v.map { $0 >= 5 } ?? false
    case .middle: element.v.map { $0 >= 3 && $0 < 7 } ?? false
    case .isA: element.k == "A"
    case .odd: element.n == 1 || element.n == 3
    }
  }
}

extension [String] {
  fileprivate var json: String { "[" + map { "\"\($0)\"" }.joined(separator: ",") + "]" }
}
