import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The facts about the daemon in the answer to `hello`, encoded once, because limits change seldom.
/// See `Protocol/methods/hello.md`.
struct Greeting {
  static let protocolVersion = 1

  private let beforeRevision: [UInt8]
  private let afterRevision: [UInt8]

  init(_ identity: ServerIdentity, _ limits: Limits) {
    var out = ByteBuffer()
    out.append("\"protocol\":", integer: Self.protocolVersion)
    out.append(",\"server\":", quoted: "feedd \(identity.version)")
    out.append(",\"epoch\":", quoted: identity.epoch)
    out.append(",\"revision\":")
    beforeRevision = Array(out.bytes)
    out.removeAll(keepingCapacity: true)
    out.append(",\"limits\":{")
    limits.appendMembers(to: &out)
    out.append("},\"capabilities\":{\"methods\":[")
    out.appendJSONStrings(Method.allCases.map(\.name).sorted())
    out.append("],\"kinds\":[")
    out.appendJSONStrings(FeedDefinition.kinds)
    out.append("],\"durability\":", quoted: identity.durability)
    out.append(UInt8(ascii: "}"))
    afterRevision = Array(out.bytes)
  }

  /// Appends the members of the answer.
  func append(revision: UInt64, to out: inout ByteBuffer) {
    beforeRevision.withUnsafeBytes { out.append($0) }
    out.append(integer: revision)
    afterRevision.withUnsafeBytes { out.append($0) }
  }
}

extension Engine {
  func hello(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    if let version = parameters.member("protocol"), version.int != Greeting.protocolVersion {
      throw Parameters.refuse("protocol", "must be 1, the only protocol this daemon speaks")
    }
    if let client = parameters.member("client") {
      reply.session.client.name = try Self.displayName(of: client)
    }
    try answer(reply) { out in
      status.greeting.append(revision: catalog.revision, to: &out)
      status.sharedLog?().append(to: &out)
    }
  }

  /// The maximum bytes of a client's name.
  private static let longestClientName = 256

  /// Returns a client's name for the log: a string, or the `name` of an object; at most 64 printable characters.
  ///
  /// - Throws: `invalidParams` for a name that is too long. It is not decoded.
  private static func displayName(of client: JSONView) throws(FeedError) -> String {
    let member: StaticString = client.kind == .object ? "client.name" : "client"
    guard let given = client.kind == .object ? client.member("name") : client, given.kind == .string else { return "" }
    guard let name = given.string(atMost: longestClientName) else {
      throw Parameters.refuse(member, "must be a name of at most \(longestClientName) bytes")
    }
    let printable = name.unicodeScalars.filter { !$0.properties.isWhitespace && $0.value >= 32 && $0.value != 127 }
    return String(printable.prefix(64).map(Character.init))
  }
}
