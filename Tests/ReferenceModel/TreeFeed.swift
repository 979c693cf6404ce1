/// One feed of the reference, in the plainest form.
struct TreeFeed {
  /// As it is now; children may have changed since it was given.
  var definition: TreeDefinition { didSet { listed = Self.listed(definition) } }
  var given: TreeDefinition
  let instance: UInt64
  /// The text of its row in `$feeds`.
  private(set) var listed: String

  /// The rows of an array or single.
  var items: [Item] = []
  /// The bins of a collection, or its sections by value.
  var bins: [Bin] = []
  /// The elements of a collection by identity.
  var elements: [Int: Element] = [:]
  /// The sections of a managed feed.
  var sets: [ManagedSection] = []
  /// The identity column and the type of its rows, which another definition changes with the next rows.
  var identifiedBy = ""
  var typedBy: String?

  init(definition: TreeDefinition, given: TreeDefinition, instance: UInt64) {
    self.definition = definition
    self.given = given
    self.instance = instance
    listed = Self.listed(definition)
  }

  private static func listed(_ definition: TreeDefinition) -> String {
    "{\"feed\":\"\(definition.name)\",\"kind\":\"\(definition.kind)\",\"definition\":\(definition.canonical)}"
  }

  struct Item {
    var token: UInt64
    var element: TreeElement
    /// When it was added or last changed.
    var changed: UInt64 = 0
    /// The same in milliseconds since 1970.
    var at = 0
  }

  struct ManagedSection {
    let name: String
    var rows: [(id: Int, row: TreeRow)] = []
  }

  struct Bin {
    let instance: UInt64
    let name: String
    var rows: [(id: Int, token: UInt64)] = []
  }

  struct Element {
    var element: TreeElement
    let arrival: UInt64
    var changed: UInt64
    /// When it changed, in milliseconds since 1970.
    var at: Int
  }

  var collection: TreeCollection? {
    if case .collection(let collection) = definition.content { return collection }
    return nil
  }

  /// The bins that are feeds of their own.
  var feedBins: [Bin] { collection?.section == nil ? bins : [] }

  /// What an array or single is made of; nil for another kind.
  var list: TreeList? {
    if case .list(let list) = definition.content { return list }
    return nil
  }

  /// What a managed feed is made of; nil for another kind.
  var managed: TreeManaged? {
    if case .managed(let managed) = definition.content { return managed }
    return nil
  }

  var retain: TreeRetention? { collection?.retain ?? list?.retain }

  /// Whether elements can be updated and deleted by their identity.
  var hasIdentity: Bool { collection != nil || list?.hasID ?? false }

  /// The children of a provider; nil for another kind.
  var children: [String]? {
    switch definition.content {
    case .composed(let children), .segmented(let children, _): children
    default: nil
    }
  }

  /// The children of a provider that show.
  var shown: [String] {
    switch definition.content {
    case .composed(let children): children
    case .segmented(let children, let current): children.indices.contains(current) ? [children[current]] : []
    default: []
    }
  }

  /// The index of the child that shows.
  var current: Int {
    if case .segmented(_, let current) = definition.content { return current }
    return -1
  }

  /// Gives a provider other children.
  mutating func adopt(_ children: [String], current: Int) {
    switch definition.content {
    case .composed: definition.content = .composed(children)
    case .segmented: definition.content = .segmented(children, current: current)
    default: break
    }
  }
}
