import FeedChange
import FeedJSON
import FeedModel

extension Configuration {
  /// Where a reader of the file finds what the file itself does not say.
  public struct Surroundings {
    /// The directory that relative paths start from.
    public let directory: String
    /// The limits in effect when the file sets none.
    public let limits: Limits
    /// Limits that the file cannot set, because a flag does.
    public let fixedLimits: Set<String>
    public let accounts: AccountNames

    public init(directory: String, limits: Limits, fixedLimits: Set<String> = [], accounts: AccountNames) {
      self.directory = directory
      self.limits = limits
      self.fixedLimits = fixedLimits
      self.accounts = accounts
    }
  }

  /// Reads the text of a configuration file.
  public init(parsing bytes: UnsafeRawBufferPointer, _ surroundings: Surroundings) throws(ConfigurationError) {
    let text = ConfigurationText(bytes: bytes)
    var scanner = JSONScanner()
    let file: JSONView
    do {
      file = try scanner.scan(bytes)
    } catch {
      throw ConfigurationError(text.place(error.offset, ""), "this is not JSON: \(error.message)")
    }
    guard file.kind == .object else {
      throw text.error(at: file, "", "must be an object with \"feeds\", \"limits\" and \"access\", each optional")
    }
    try KnownMembers.check(file, KnownMembers.file, "", text)
    limits = try Self.limits(file, text)
    let effective = Self.merge(limits, surroundings)
    entries = try Self.sorted(try Self.entries(file, text, effective, surroundings.directory))
    access = try AccessRules(reading: file, text, surroundings.accounts)
  }

  /// The limits as the file and the flags together make them.
  public func effectiveLimits(_ surroundings: Surroundings) -> Limits {
    Self.merge(limits, surroundings)
  }

  private static func merge(_ limits: [String: Int], _ surroundings: Surroundings) -> Limits {
    var merged = surroundings.limits
    for limit in Limits.all where !surroundings.fixedLimits.contains(limit.name) {
      if let value = limits[limit.name] { merged[keyPath: limit.keyPath] = value }
    }
    return merged
  }

  private static func limits(_ file: JSONView, _ text: ConfigurationText) throws(ConfigurationError) -> [String: Int] {
    guard let object = file.member("limits") else { return [:] }
    guard object.kind == .object else { throw text.error(at: object, "limits", "must be an object of limits by name") }
    try KnownMembers.check(object, Limits.all.map(\.name), "limits", text)
    var limits: [String: Int] = [:]
    for member in object.members {
      guard let limit = Limits.all.first(where: { $0.name == member.key.string }) else { continue }
      guard let value = member.value.int, limit.range.contains(value) else {
        throw text.error(
          at: member.value, "limits.\(limit.name)",
          "must be a whole number from \(limit.range.lowerBound) to \(limit.range.upperBound): \(limit.help)")
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
      try KnownMembers.check(definition: element, member, text)
      let definition: FeedDefinition
      do throws(FeedError) {
        definition = try FeedDefinition(parsing: element, limits: limits).located(in: directory)
      } catch {
        throw text.error(error, in: element, member)
      }
      if let first = places.updateValue(index, forKey: definition.name) {
        throw text.error(
          at: element.member("feed") ?? element, "\(member).feed",
          "\"\(definition.name)\" is defined by feeds[\(first)] already; a name stands for one feed")
      }
      entries.append(Entry(definition: definition, place: text.place(element.byteOffset, member)))
    }
    return entries
  }
}

extension FeedDefinition {
  /// The same with the path of its database made absolute.
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
