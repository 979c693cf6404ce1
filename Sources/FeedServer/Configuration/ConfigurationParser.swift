import FeedChange
import FeedEngine
import FeedJSON
import FeedModel
import FeedWire

/// Parses the text of a configuration file (`Protocol/config.md`).
extension Configuration {
  /// The context in which a file is parsed.
  struct Surroundings {
    /// The directory of relative paths.
    let directory: String
    /// The limits in effect if the file sets none.
    let limits: Limits
    /// The limits of a daemon that runs, which the file cannot change: its definitions must keep to these too. Nil at a start.
    var present: Limits?
    /// Limits that the file cannot set, because the command line does.
    var fixedLimits: Set<String> = []
    let accounts: AccountNames
    /// Called with the error of an account of an access rule that does not exist, if that is to refuse nothing.
    var forgive: ((ConfigurationError) -> Void)?
    /// Whether patterns of rules are compared with all names of the file. The daemon, which must not wait for that, does not.
    var findsRemarks = false
  }

  /// Parses the text of a configuration file.
  init(parsing bytes: UnsafeRawBufferPointer, _ surroundings: Surroundings) throws(ConfigurationError) {
    // Columns do not count a byte order mark, because editors do not show it.
    let bytes = UnsafeRawBufferPointer(rebasing: bytes[ByteOrderMark.length(atStartOf: bytes)...])
    let text = ConfigurationText(bytes)
    var scanner = JSONScanner()
    let file: JSONView
    do {
      file = try scanner.scan(bytes)
    } catch {
      throw ConfigurationError(text.place(error.offset, ""), "not JSON: \(error.message(in: bytes))")
    }
    guard file.kind == .object else {
      throw text.error(
        at: file, "",
        "must be an object with \"feeds\", \"limits\", \"access\", \"socketMode\", \"socketGroup\" and \"group\", each optional"
      )
    }
    try FileMembers.check(file, FileMembers.file, "", text)
    let limits = try Self.limits(file, text)
    let merged = Self.merge(limits, surroundings)
    let effective = surroundings.present.map(merged.lowered(to:)) ?? merged
    let entries = try Self.entries(file, text, effective.ofConfiguration, surroundings.directory)
    let access = try AccessRules(reading: file, text, surroundings)
    try self.init(
      entries: entries, limits: limits, access: access,
      socket: try SocketSettings(reading: file, text, surroundings.accounts),
      group: try GroupFacts(reading: file, text, surroundings.directory),
      remarks: surroundings.findsRemarks ? Self.remarks(aboutRulesOf: file, entries, text) : [])
  }

  /// The limits of the file and the command line combined.
  func effectiveLimits(_ surroundings: Surroundings) -> Limits { Self.merge(limits, surroundings) }

  private static func merge(_ limits: [String: Int], _ surroundings: Surroundings) -> Limits {
    var merged = surroundings.limits
    for limit in Limits.all where !surroundings.fixedLimits.contains(limit.name) {
      if let value = limits[limit.name] { merged[keyPath: limit.keyPath] = value }
    }
    return merged
  }

  /// The patterns of rules that match no feed of the file.
  private static func remarks(
    aboutRulesOf file: JSONView, _ entries: [Entry], _ text: ConfigurationText
  ) -> [ConfigurationError] {
    guard let rules = file.member("access") else { return [] }
    let names = entries.flatMap(\.definition.names)
    var remarks: [ConfigurationError] = []
    for (index, rule) in rules.elements.enumerated() {
      for (view, path) in RuleReader(object: rule, place: "access[\(index)]", text: text).values("feeds") {
        guard let pattern = view.string, !pattern.hasPrefix("$"), pattern != "*" else { continue }
        if names.contains(where: NamePattern(pattern).matches(feed:)) { continue }
        let advice = Spelling.nearest(to: pattern, in: names).map { "; did you mean \"\($0)\"?" } ?? ""
        remarks.append(
          text.error(
            at: view, path,
            "\"\(pattern)\" matches no feed of this file; it concerns only feeds that clients define\(advice)"))
      }
    }
    return remarks
  }

  private static func limits(_ file: JSONView, _ text: ConfigurationText) throws(ConfigurationError) -> [String: Int] {
    guard let object = file.member("limits") else { return [:] }
    guard object.kind == .object else { throw text.error(at: object, "limits", "must be an object of limits by name") }
    try FileMembers.check(object, Limits.all.map(\.name), "limits", text)
    var limits: [String: Int] = [:]
    for member in object.members {
      guard let limit = Limits.all.first(where: { $0.name == member.key.string }) else { continue }
      guard let value = member.value.int, limit.range.contains(value) else {
        throw text.error(
          at: member.value, "limits.\(limit.name)",
          "must be an integer from \(grouped(limit.range.lowerBound)) to \(grouped(limit.range.upperBound)): \(limit.help)"
        )
      }
      limits[limit.name] = value
    }
    return limits
  }

  private static func entries(
    _ file: JSONView, _ text: ConfigurationText, _ limits: Limits, _ directory: String
  ) throws(ConfigurationError) -> [Entry] {
    guard let array = file.member("feeds") else { return [] }
    guard array.kind == .array else { throw text.error(at: array, "feeds", "must be an array of definitions") }
    var entries: [Entry] = []
    var places: [String: Int] = [:]
    for (index, element) in array.elements.enumerated() {
      let member = "feeds[\(index)]"
      guard element.kind == .object else {
        throw text.error(at: element, member, "must be an object that describes a feed")
      }
      try FileMembers.check(definition: element, member, text)
      let definition: FeedDefinition
      do throws(FeedError) {
        definition = try FeedDefinition(parsing: element, limits: limits, defaultKind: defaultKind)
          .located(in: directory)
      } catch {
        throw text.error(error, in: element, member)
      }
      if let first = places.updateValue(index, forKey: definition.name) {
        throw text.error(
          at: element.member("feed") ?? element, "\(member).feed",
          "\"\(definition.name)\" is defined by feeds[\(first)] already; a name stands for one feed")
      }
      var members: [String: ConfigurationError.Place] = [:]
      for name in ["database", "query"] {
        if let view = element.member(named: name) { members[name] = text.place(view.byteOffset, "\(member).\(name)") }
      }
      entries.append(Entry(definition: definition, place: text.place(element.byteOffset, member), members: members))
    }
    return entries
  }

  /// The kind of a definition that names none, as on the command line of `feedclient define`.
  static let defaultKind = "collection"
}

extension SocketSettings {
  /// Parses the members `socketMode` and `socketGroup` of a configuration.
  fileprivate init(
    reading file: JSONView, _ text: ConfigurationText, _ accounts: AccountNames
  ) throws(ConfigurationError) {
    self.init()
    if let view = file.member("socketMode") {
      guard let mode = view.string.flatMap(Self.mode) else {
        throw text.error(at: view, "socketMode", "must be a string with \(Self.modeSyntax)")
      }
      self.mode = mode
    }
    guard let view = file.member("socketGroup") else { return }
    group = view.int.flatMap(UInt32.init(exactly:)) ?? view.string.flatMap { accounts.group($0)?.gid ?? UInt32($0) }
    if group == nil {
      throw text.error(
        at: view, "socketGroup",
        view.string.map { "there is no group \"\($0)\"" } ?? "must be the name or number of a group")
    }
  }
}

extension GroupFacts {
  /// Parses the member `group` of a configuration; nil if it is absent. Paths begin at `directory`.
  fileprivate init?(
    reading file: JSONView, _ text: ConfigurationText, _ directory: String
  ) throws(ConfigurationError) {
    guard let object = file.member("group") else { return nil }
    guard object.kind == .object else {
      throw text.error(at: object, "group", "must be an object with \"name\" and \"log\"")
    }
    try FileMembers.check(object, FileMembers.group, "group", text)
    self.init()
    func string(_ name: StaticString) throws(ConfigurationError) -> String? {
      guard let view = object.member(name) else { return nil }
      guard let value = view.string, !value.isEmpty else {
        throw text.error(at: view, "group.\(name)", "must be a string that is not empty")
      }
      return value
    }
    func path(_ name: StaticString) throws(ConfigurationError) -> String? {
      try string(name).map { $0.hasPrefix("/") ? $0 : "\(directory)/\($0)" }
    }
    name = try string("name")
    host = try string("host")
    (user, password, token) = (try string("user"), try string("password"), try string("token"))
    (credentials, authority) = (try path("credentials"), try path("authority"))
    (certificate, key) = (try path("certificate"), try path("key"))
    if let view = object.member("log") {
      let urls = view.kind == .array ? view.elements.compactMap(\.string) : [view.string].compactMap { $0 }
      guard !urls.isEmpty, view.kind != .array || urls.count == view.count else {
        throw text.error(
          at: view, "group.log", "must be the URL of a NATS server, such as nats://127.0.0.1:4222, or an array")
      }
      log = urls
    }
    if let view = object.member("replicas") {
      guard let value = view.int, (1...5).contains(value) else {
        throw text.error(at: view, "group.replicas", "must be an integer from 1 to 5")
      }
      replicas = value
    }
    if (certificate == nil) != (key == nil) {
      throw text.error(at: object, "group", "must have both \"certificate\" and \"key\", or neither")
    }
  }
}

extension FeedDefinition {
  /// The name of the feed, and those of its bins.
  fileprivate var names: [String] {
    guard case .collection(let collection) = content else { return [name] }
    return [name] + collection.bins.map { "\(name)/\($0.name)" }
  }

  /// Returns the definition with the path of its database made absolute.
  fileprivate func located(in directory: String) -> FeedDefinition {
    guard case .managed(let managed) = content, !managed.database.hasPrefix("/") else { return self }
    let path = directory.hasSuffix("/") ? directory + managed.database : "\(directory)/\(managed.database)"
    return FeedDefinition(
      name: name,
      content: .managed(
        ManagedDefinition(
          database: path, query: managed.query, id: managed.id, section: managed.section, type: managed.type)),
      behaviours: behaviours)
  }
}

extension AccessRules {
  /// Parses the member `access` of a configuration; nil if it is absent.
  fileprivate init?(
    reading file: JSONView, _ text: ConfigurationText, _ surroundings: Configuration.Surroundings
  ) throws(ConfigurationError) {
    guard let array = file.member("access") else { return nil }
    guard array.kind == .array else { throw text.error(at: array, "access", "must be an array of rules") }
    var rules: [Rule] = []
    for (index, element) in array.elements.enumerated() {
      let reader = RuleReader(object: element, place: "access[\(index)]", text: text)
      rules.append(try reader.rule(surroundings.accounts, forgive: surroundings.forgive))
    }
    self.init(rules: rules)
  }
}

private struct RuleReader {
  let object: JSONView
  let place: String
  let text: ConfigurationText

  func rule(
    _ accounts: AccountNames, forgive: ((ConfigurationError) -> Void)?
  ) throws(ConfigurationError) -> AccessRules.Rule {
    func refuse(_ view: JSONView, _ path: String, _ reason: String) throws(ConfigurationError) {
      let error = text.error(at: view, path, reason)
      guard let forgive else { throw error }
      forgive(error)
    }
    guard object.kind == .object else { throw text.error(at: object, place, "must be an object with \"allow\"") }
    try FileMembers.check(object, FileMembers.rule, place, text)
    var rule = AccessRules.Rule()
    rule.isForAll = ["uid", "user", "gid", "group"].allSatisfy { name in
      !object.members.contains { $0.key.string == name }
    }
    for (view, path) in values("uid") { rule.users.insert(try number(view, path)) }
    for (view, path) in values("gid") { rule.groups.insert(try number(view, path)) }
    for (view, path) in values("user") {
      let name = try string(view, path)
      guard let uid = accounts.user(name) else {
        try refuse(view, path, "there is no user \"\(name)\"")
        continue
      }
      rule.users.insert(uid)
    }
    for (view, path) in values("group") {
      let name = try string(view, path)
      guard let group = accounts.group(name) else {
        try refuse(view, path, "there is no group \"\(name)\"")
        continue
      }
      rule.groups.insert(group.gid)
      rule.users.formUnion(group.members)
    }
    if object.member("feeds") != nil {
      rule.feeds = []
      for (view, path) in values("feeds") { rule.feeds.append(NamePattern(try string(view, path))) }
    }
    rule.rights = try rights()
    return rule
  }

  private func rights() throws(ConfigurationError) -> Set<Right> {
    guard object.member("allow") != nil else {
      throw text.error(at: object, place, "is missing \"allow\"; give an array of read, write, define, admin")
    }
    var rights: Set<Right> = []
    for (view, path) in values("allow") {
      let name = try string(view, path)
      guard let right = Right(rawValue: name) else {
        throw text.error(at: view, path, "is \"\(name)\" and must be one of read, write, define, admin")
      }
      rights.insert(right)
    }
    return rights
  }

  /// The values of a member that is one value or an array of values.
  func values(_ name: StaticString) -> [(JSONView, String)] {
    guard let value = object.member(name) else { return [] }
    let path = "\(place).\(name)"
    guard value.kind == .array else { return [(value, path)] }
    return value.elements.enumerated().map { ($1, "\(path)[\($0)]") }
  }

  private func number(_ view: JSONView, _ path: String) throws(ConfigurationError) -> UInt32 {
    guard let number = view.int.flatMap(UInt32.init(exactly:)) else {
      throw text.error(at: view, path, "must be an integer from 0 to \(UInt32.max)")
    }
    return number
  }

  private func string(_ view: JSONView, _ path: String) throws(ConfigurationError) -> String {
    guard let string = view.string, !string.isEmpty else { throw text.error(at: view, path, "must be a string") }
    return string
  }
}

/// Looks up users and groups by name.
struct AccountNames {
  /// Returns the uid of a user; nil if there is no such user.
  let user: (String) -> UInt32?
  /// Returns the gid of a group and its members, without the users whose primary group it is.
  let group: (String) -> (gid: UInt32, members: [UInt32])?
}
