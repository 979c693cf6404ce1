import FeedChange
import FeedClient
import FeedJSON
import FeedQuery
import FeedSystem

/// What a command remembers of a row instead of its element: a digest, the identity, and whether the filter of `--where`
/// accepted the element.
///
/// Its text is a JSON array such as `["9ae16a3b2f90404f",17]`, with a third entry `false` if the filter did not accept. A hyphen and
/// the digest of the type follow the first digest if there is one.
struct RowPrint: Equatable {
  /// The digest of the element and of the row's type.
  var digest: UInt64
  /// The digest of the type, in a section with rows of several feeds that their types name.
  var type: UInt64?
  /// The identity as JSON text; nil if the element has none.
  var id: [UInt8]?
  var isAccepted = true

  /// The number of bytes before the identity, and of the digits of the digest.
  private static let (prefix, digits) = (20, 16)
  private static let refused = Array(",false]".utf8)

  init(digest: UInt64, type: UInt64? = nil, id: [UInt8]?, isAccepted: Bool = true) {
    (self.digest, self.type, self.id, self.isAccepted) = (digest, type, id, isAccepted)
  }

  /// Reads a text that ``text`` returned; nil if it is malformed.
  init?(_ text: [UInt8]) {
    guard text.starts(with: Array("[\"".utf8)), let digest = Self.number(in: text, at: 2) else { return nil }
    self.digest = digest
    var prefix = Self.prefix
    if text.dropFirst(prefix - 2).first == UInt8(ascii: "-") {
      type = Self.number(in: text, at: prefix - 1)
      prefix += 1 + Self.digits
    }
    guard text.count > prefix else { return nil }
    isAccepted = text.suffix(Self.refused.count) != Self.refused[...]
    let id = text[prefix...].dropLast(isAccepted ? 1 : Self.refused.count)
    self.id = id.elementsEqual("null".utf8) ? nil : Array(id)
  }

  /// The number of ``digits`` hexadecimal digits at a place; nil if there is none.
  private static func number(in text: [UInt8], at place: Int) -> UInt64? {
    guard text.count > place + digits else { return nil }
    return UInt64(String(decoding: text[place..<place + digits], as: UTF8.self), radix: 16)
  }

  var text: [UInt8] {
    let ofType = type.map { "-\(padded($0, to: Self.digits, radix: 16))" } ?? ""
    let text = Array("[\"\(padded(digest, to: Self.digits, radix: 16))\(ofType)\",".utf8)
    return text + (id ?? Array("null".utf8)) + (isAccepted ? [UInt8(ascii: "]")] : Self.refused)
  }
}

extension RowPrint {
  /// Returns the text of an identity as the daemon writes it: equal identities have equal texts, however elements write them.
  static func canonical(_ id: [UInt8]) -> [UInt8] {
    let isString = id.first == UInt8(ascii: "\"")
    if isString, !id.contains(UInt8(ascii: "\\")) { return id }
    var text = ByteBuffer()
    id.withUnsafeBytes { bytes in
      guard isString else { return JSONNumber(bytes).appendCanonicalText(to: &text) }
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes) else { return text.append(bytes) }
      view.withDecodedUTF8 { text.appendJSONString(utf8: $0) }
    }
    return Array(text.bytes)
  }
}

/// Makes the prints of a feed's rows.
struct RowPrinter {
  var identities = IdentityPaths.id
  /// The filter of `--where`.
  var filter: Filter?

  func print(_ element: JSONView, type: String?, section: String? = nil) -> RowPrint {
    let values = identities.paths(in: section).lazy.compactMap { $0.resolve(element) }
    let id = values.first { $0.kind == .string || $0.kind == .number }?.compactText
    return RowPrint(
      digest: Self.digest(element, type), type: identities.areTyped(in: section) ? Self.digest(nil, type) : nil,
      id: id, isAccepted: filter?.accepts(element) ?? true)
  }

  /// FNV-1a of the compact text, a zero byte and the type.
  private static func digest(_ element: JSONView?, _ type: String?) -> UInt64 {
    var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    if let element { if element.isCompact { element.text.forEach(add) } else { element.compactText.forEach(add) } }
    if let type {
      add(0)
      type.utf8.forEach(add)
    }
    return digest
  }
}

/// Where the elements of a feed have their identities: at the `id` path of the feed that they are in. An identity is unique in
/// that feed only: rows of different feeds in one section may share it.
struct IdentityPaths {
  /// The paths of the feeds whose rows are shown, each once.
  private var paths: [SingularPath] = []
  private var byFeed: [String: SingularPath] = [:]
  /// The slots feeds and views that show rows of several feeds in their one section.
  private var mixtures: Set<String> = []
  /// Those of them in which the type of a row names its feed.
  private var typed: Set<String> = []

  static let id = IdentityPaths()
  private static let fallback = [SingularPath.id]

  mutating func add(_ path: SingularPath, of feed: String) {
    byFeed[feed] = path
    if !paths.contains(where: { $0.text.utf8.elementsEqual(path.text.utf8) }) { paths.append(path) }
  }

  /// Adds what feeds show. A slots feed or a view mixes the rows of all feeds below it that show no others.
  /// - Parameters:
  ///   - shown: the feeds that each feed shows.
  ///   - elementTypes: the slots feeds whose rows have the types of their elements, which change with the elements.
  mutating func addMixtures(
    _ kinds: [String: String], _ shown: [String: [String]], elementTypes: Set<String> = []
  ) {
    for (feed, kind) in kinds where kind == "slots" || kind == "view" {
      var (names, seen, next, sources) = ([feed], Set([feed]), 0, 0)
      while next < names.count {
        let below = shown[names[next]] ?? []
        next += 1
        if below.isEmpty { sources += 1 }
        for name in below where seen.insert(name).inserted { names.append(name) }
      }
      guard sources > 1 else { continue }
      mixtures.insert(feed)
      // A view keeps the types of its source, which is the first of the others.
      let origin = names.first { kinds[$0] != "view" }
      if let origin, kinds[origin] == "slots", !elementTypes.contains(origin) { typed.insert(feed) }
    }
  }

  /// Whether the types of the rows of a section name their feeds.
  /// - Parameter section: the name of the section; nil if unknown.
  func areTyped(in section: String?) -> Bool { section.map { typed.contains(SectionWord.feed(of: $0)) } ?? false }

  /// Whether two rows of a section may have one identity and be rows of different feeds.
  /// - Parameter section: the name of the section; nil if unknown.
  func areShared(in section: String?) -> Bool {
    guard let section, !mixtures.isEmpty else { return !mixtures.isEmpty }
    return mixtures.contains(SectionWord.feed(of: section))
  }

  /// The paths of the identities of the rows in a section; several if the section has rows of several feeds.
  func paths(in section: String?) -> [SingularPath] {
    if paths.count > 1, let section, let path = byFeed[SectionWord.feed(of: section)] { return [path] }
    return paths.isEmpty ? Self.fallback : paths
  }

  /// Returns an element that has only this identity, as JSON text: at each place where it may be, as far as that has a name.
  func element(withID id: [UInt8], in section: String?) -> [UInt8] {
    let places = paths(in: section).compactMap { MemberPath(jsonPath: $0.text)?.names }
    if places.contains([]) { return id }
    let text = String(decoding: id, as: UTF8.self)
    let members = places.map { $0.reversed().reduce(text) { "{\($1.quotedAsJSON):\($0)}" }.dropFirst().dropLast() }
    return Array("{\(members.joined(separator: ","))}".utf8)
  }
}

extension IdentityPaths {
  /// The maximum number of feeds that are asked for.
  private static let maxFeeds = 64

  /// Asks the daemon for the definitions of a feed and of those whose rows it shows. What it does not tell is `$.id`.
  init(of feed: String, _ invocation: Invocation) {
    if feed == FeedName.feeds {
      if let path = try? SingularPath(parsing: "$.feed") { add(path, of: feed) }
      return
    }
    let deadline = MonotonicClock.now &+ 5_000_000_000
    guard let connection = try? Connection.open(path: invocation.socketPath, timeout: .seconds(1)),
      (try? connection.hello(client: "feedclient/\(invocation.command.name)", deadline: deadline)) != nil
    else { return }
    var (names, next) = ([SectionWord.feed(of: feed)], 0)
    var seen = Set(names)
    var (kinds, shown): ([String: String], [String: [String]]) = ([:], [:])
    var elementTypes: Set<String> = []
    while next < min(names.count, Self.maxFeeds) {
      let name = names[next]
      next += 1
      let text = ParameterWriter(feed: name).finish()
      let found = try? connection.call("describe", params: { $0.append(string: text) }, deadline: deadline) {
        (
          path: $0.member("id")?.string, kind: $0.member("kind")?.string, shown: Self.shown(by: $0),
          hasElementTypes: $0.member("types")?.string == "element"
        )
      }
      guard let found else { continue }
      if let path = found.path.flatMap({ try? SingularPath(parsing: $0) }) { add(path, of: name) }
      (kinds[name], shown[name]) = (found.kind, found.shown)
      if found.hasElementTypes { elementTypes.insert(name) }
      for name in found.shown where seen.insert(name).inserted { names.append(name) }
    }
    addMixtures(kinds, shown, elementTypes: elementTypes)
  }

  /// The feeds whose rows a feed with this description shows. A bin has no definition of its own: its collection stands for it.
  private static func shown(by description: JSONView) -> [String] {
    let contents = description.member("contents")?.members.map(\.value) ?? []
    let children = description.member("children")?.elements.map { $0 } ?? []
    return ([description.member("of")].compactMap(\.self) + children + contents).compactMap {
      $0.string.map(SectionWord.feed)
    }
  }
}
