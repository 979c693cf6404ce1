import FeedChange
import FeedClient
import FeedJSON
import FeedQuery
import FeedSystem

/// Where the elements of a feed have their identities: at the `id` path of the feed that they are in.
struct IdentityPaths {
  /// The paths of the feeds whose rows are shown, each once.
  private var paths: [SingularPath] = []
  private var byFeed: [String: SingularPath] = [:]

  static let id = IdentityPaths()
  private static let fallback = [SingularPath.id]

  /// Adds the path in the definition of a feed.
  mutating func add(_ path: SingularPath, of feed: String) {
    byFeed[feed] = path
    if !paths.contains(where: { $0.text == path.text }) { paths.append(path) }
  }

  /// The paths of the identities of the rows in a section; several if the section has rows of several feeds.
  func paths(in section: String?) -> [SingularPath] {
    if paths.count > 1, let feed = section?.prefix(while: { $0 != "/" }), let path = byFeed[String(feed)] {
      return [path]
    }
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
    var (names, next) = ([feed], 0)
    while next < min(names.count, Self.maxFeeds) {
      // A bin has no definition of its own.
      let name = String(names[next].prefix { $0 != "/" })
      next += 1
      let text = ParameterWriter(feed: name).finish()
      let found = try? connection.call("describe", params: { $0.append(string: text) }, deadline: deadline) {
        (path: $0.member("id")?.string, shown: Self.shown(by: $0))
      }
      if let path = found?.path.flatMap({ try? SingularPath(parsing: $0) }) { add(path, of: name) }
      for name in found?.shown ?? [] where !names.contains(name) { names.append(name) }
    }
  }

  /// The feeds whose rows a feed with this description shows.
  private static func shown(by description: JSONView) -> [String] {
    let contents = description.member("contents")?.members.map(\.value) ?? []
    let children = description.member("children")?.elements.map { $0 } ?? []
    return ([description.member("of")].compactMap(\.self) + children + contents).compactMap(\.string)
  }
}
