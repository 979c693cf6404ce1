import FeedJSON
import FeedQuery

@testable import FeedModel

/// What a collection's definition says, and the naive way to follow it.
struct CollectionRules {
  struct Term {
    let by: SingularPath
    let descending: Bool

    init(by: String, descending: Bool = false) {
      self.by = try! SingularPath(parsing: by)
      self.descending = descending
    }
  }

  struct Bin {
    let name: String
    let filter: Filter?
    let sort: [Term]

    init(name: String, filter: String? = nil, sort: [Term] = []) {
      self.name = name
      self.filter = filter.map { try! Filter(parsing: $0) }
      self.sort = sort
    }
  }

  var id = SingularPath.id
  var type: SingularPath?
  var exclusive = false
  var bins: [Bin]
  var retainCount: Int?
  var retainSeconds: Int?

  /// The definition of a collection `c` as `define` takes it.
  var definition: String {
    var members = [#""feed":"c","kind":"collection""#, #""id":"\#(id.text)""#, #""exclusive":\#(exclusive)"#]
    if let type { members.append(#""type":"\#(type.text)""#) }
    let retention = [retainCount.map { #""count":\#($0)"# }, retainSeconds.map { #""seconds":\#($0)"# }]
    let retain = retention.compactMap { $0 }
    if !retain.isEmpty { members.append(#""retain":{\#(retain.joined(separator: ","))}"#) }
    members.append(#""bins":[\#(bins.map(\.definition).joined(separator: ","))]"#)
    return "{" + members.joined(separator: ",") + "}"
  }

  func identity(of text: String) throws -> String {
    try withView(text) { view in
      guard let value = id.resolve(view) else { throw CollectionReference.Refused() }
      return try Self.identity(value)
    }
  }

  static func identity(_ text: String) throws -> String { try withView(text) { try identity($0) } }

  private static func identity(_ value: JSONView) throws -> String {
    if let string = value.string { return "s" + string }
    guard value.kind == .number, let number = Double(String(decoding: value.text, as: UTF8.self)) else {
      throw CollectionReference.Refused()
    }
    return "n\(number == 0 ? 0 : number)"
  }

  /// Which bins accept an element.
  func verdicts(on text: String) -> [Bool] {
    var accepted = withView(text) { view in bins.map { $0.filter?.accepts(view) ?? true } }
    if exclusive, let first = accepted.firstIndex(of: true) {
      for bin in accepted.indices { accepted[bin] = bin == first }
    }
    return accepted
  }

  /// The type of an element, a JSON string.
  func type(of text: String) -> String? {
    guard let type else { return nil }
    return withView(text) { view in
      guard let value = type.resolve(view), value.kind == .string else { return nil }
      return String(decoding: value.text, as: UTF8.self)
    }
  }
}

extension CollectionRules.Bin {
  var definition: String {
    let terms = sort.map { #"{"by":"\#($0.by.text)","order":"\#($0.descending ? "descending" : "ascending")"}"# }
    let filter = filter.map { #","filter":"\#($0.text.replacing("\"", with: "\\\""))""# } ?? ""
    return #"{"name":"\#(name)"\#(filter),"sort":[\#(terms.joined(separator: ","))]}"#
  }

  /// How two elements are ordered: below, at or above 0.
  func compare(_ a: String, _ b: String) -> Int {
    for term in sort {
      let (x, y) = (SortValue(a, term.by), SortValue(b, term.by))
      if x == y { continue }
      // What is absent is last in either direction.
      if x == .absent || y == .absent { return x == .absent ? 1 : -1 }
      return (x < y) != term.descending ? -1 : 1
    }
    return 0
  }
}

/// null < false < true < numbers < strings < arrays and objects.
enum SortValue: Comparable {
  case null
  case no
  case yes
  case number(Double)
  case string([UInt32])
  case structure
  case absent

  init(_ text: String, _ path: SingularPath) {
    self = withView(text) { view in
      guard let value = path.resolve(view) else { return .absent }
      switch value.kind {
      case .null: return .null
      case .false: return .no
      case .true: return .yes
      case .number: return .number(Double(String(decoding: value.text, as: UTF8.self))!)
      case .string: return .string(value.string!.unicodeScalars.map(\.value))
      case .array, .object: return .structure
      }
    }
  }

  static func < (a: SortValue, b: SortValue) -> Bool {
    switch (a, b) {
    case (.number(let x), .number(let y)): x < y
    case (.string(let x), .string(let y)): x.lexicographicallyPrecedes(y)
    default: a.rank < b.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null: 0
    case .no: 1
    case .yes: 2
    case .number: 3
    case .string: 4
    case .structure: 5
    case .absent: 6
    }
  }
}

/// Scans a text and hands it to `body` for the time of the call.
func withView<Result>(_ text: String, _ body: (JSONView) throws -> Result) rethrows -> Result {
  var scanner = JSONScanner()
  return try Array(text.utf8).withUnsafeBytes { bytes in
    guard let view = try? scanner.scan(bytes) else {
      preconditionFailure("the test's own JSON does not parse: \(text)")
    }
    return try body(view)
  }
}
