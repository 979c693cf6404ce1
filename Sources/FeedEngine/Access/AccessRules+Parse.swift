import FeedJSON
import FeedModel
import FeedWire

extension AccessRules {
  /// Reads member `access` of a configuration; nil when it is absent.
  init?(reading file: JSONView, _ text: ConfigurationText, _ accounts: AccountNames) throws(ConfigurationError) {
    guard let array = file.member("access") else { return nil }
    guard array.kind == .array else { throw text.error(at: array, "access", "must be an array of rules") }
    var rules: [Rule] = []
    for (index, element) in array.elements.enumerated() {
      let reader = RuleReader(object: element, place: "access[\(index)]", text: text)
      rules.append(try reader.rule(accounts))
    }
    self.init(rules: rules)
  }
}

/// Reads one rule.
private struct RuleReader {
  let object: JSONView
  let place: String
  let text: ConfigurationText

  func rule(_ accounts: AccountNames) throws(ConfigurationError) -> AccessRules.Rule {
    guard object.kind == .object else { throw text.error(at: object, place, "must be an object with \"allow\"") }
    try KnownMembers.check(object, KnownMembers.rule, place, text)
    var rule = AccessRules.Rule()
    rule.isForAll = ["uid", "user", "gid", "group"].allSatisfy { name in
      !object.members.contains { $0.key.string == name }
    }
    for (view, path) in try values("uid") { rule.users.insert(try number(view, path)) }
    for (view, path) in try values("gid") { rule.groups.insert(try number(view, path)) }
    for (view, path) in try values("user") {
      let name = try string(view, path)
      guard let uid = accounts.user(name) else { throw text.error(at: view, path, "there is no user \"\(name)\"") }
      rule.users.insert(uid)
    }
    for (view, path) in try values("group") {
      let name = try string(view, path)
      guard let group = accounts.group(name) else { throw text.error(at: view, path, "there is no group \"\(name)\"") }
      rule.groups.insert(group.gid)
      rule.users.formUnion(group.members)
    }
    if object.member("feeds") != nil {
      rule.feeds = []
      for (view, path) in try values("feeds") { rule.feeds.append(NamePattern(try string(view, path))) }
    }
    rule.rights = try rights()
    return rule
  }

  private func rights() throws(ConfigurationError) -> Set<Right> {
    guard object.member("allow") != nil else {
      throw text.error(at: object, place, "says nothing: give \"allow\" as an array of read, write, define, admin")
    }
    var rights: Set<Right> = []
    for (view, path) in try values("allow") {
      let name = try string(view, path)
      guard let right = Right(rawValue: name) else {
        throw text.error(at: view, path, "is \"\(name)\" and must be one of read, write, define, admin")
      }
      rights.insert(right)
    }
    return rights
  }

  /// The values of a member that may be one value or an array of them.
  private func values(_ name: StaticString) throws(ConfigurationError) -> [(JSONView, String)] {
    guard let value = object.member(name) else { return [] }
    let path = "\(place).\(name)"
    guard value.kind == .array else { return [(value, path)] }
    return value.elements.enumerated().map { ($1, "\(path)[\($0)]") }
  }

  private func number(_ view: JSONView, _ path: String) throws(ConfigurationError) -> UInt32 {
    guard let number = view.int.flatMap(UInt32.init(exactly:)) else {
      throw text.error(at: view, path, "must be a whole number from 0 to \(UInt32.max)")
    }
    return number
  }

  private func string(_ view: JSONView, _ path: String) throws(ConfigurationError) -> String {
    guard let string = view.string, !string.isEmpty else { throw text.error(at: view, path, "must be a string") }
    return string
  }
}
