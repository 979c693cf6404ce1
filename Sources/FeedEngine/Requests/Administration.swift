import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `quotas`, `kick` and `group`: what administrators see of users and of the group, and do about connections.
extension Engine {
  /// What each user stores and what its connections hold, with the totals and their limits.
  func quotas(_ reply: Reply) throws(FeedError) {
    try access.checkAdministrator(reply.session.peer)
    try answer(reply) { out in
      out.append("\"users\":[")
      appendUsages(to: &out)
      out.append("],\"total\":{\"connections\":", integer: sessions.quotas.connections)
      out.append(",\"held\":", integer: sessions.quotas.bytes)
      append(catalog.accounts.total, to: &out)
      out.append("},\"limits\":{")
      limits.appendMembers(Self.quotaLimits, to: &out)
      out.append(UInt8(ascii: "}"))
    }
  }

  private static let quotaLimits: Set<String> = [
    "maxConnections", "maxConnectionsPerUser", "maxQueuePerUser", "maxFeeds", "maxFeedsPerUser", "maxTotalElements",
    "maxElementsPerUser", "maxTotalBytes", "maxBytesPerUser", "maxTotalDefinitionBytes", "maxDefinitionBytesPerUser",
    "maxTotalSelected", "maxSelectedPerUser", "maxTotalViewRows", "maxViewRowsPerUser",
  ]

  /// Appends an object for each user that stores something or is connected, ascending; the first has `uid` null if there are
  /// feeds that no user defined.
  private func appendUsages(to out: inout ByteBuffer) {
    let accounts = catalog.accounts
    var users: [UInt32?] = Set(accounts.owners).union(sessions.quotas.connectedUsers).sorted()
    if !accounts.unowned.isEmpty { users.insert(nil, at: 0) }
    for (place, uid) in users.enumerated() {
      out.append(place > 0 ? ",{\"uid\":" : "{\"uid\":")
      if let uid { out.append(integer: uid) } else { out.append("null") }
      out.append(",\"connections\":", integer: uid.map { sessions.quotas.connections(of: $0) } ?? 0)
      out.append(",\"held\":", integer: uid.map { sessions.quotas.bytes(of: $0) } ?? 0)
      append(uid.map { accounts.usage(of: $0) } ?? accounts.unowned, to: &out)
      out.append(UInt8(ascii: "}"))
    }
  }

  /// Appends what an account stores as members, behind others; zeros for none.
  func append(_ account: Account?, to out: inout ByteBuffer) {
    out.append(",\"feeds\":", integer: account?.feeds ?? 0)
    out.append(",\"elements\":", integer: account?.elements ?? 0)
    out.append(",\"elementBytes\":", integer: account?.bytes ?? 0)
    out.append(",\"definitionBytes\":", integer: account?.definitionBytes ?? 0)
    out.append(",\"selected\":", integer: account?.selected ?? 0)
    out.append(",\"viewRows\":", integer: account?.viewRows ?? 0)
  }

  /// Returns what is known of the group, and does what `action` asks for.
  func group(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    var action: GroupAction?
    if let given = parameters.member("action") {
      let names = ["status"] + GroupAction.allCases.map(\.rawValue)
      guard given.text.count <= 64, let name = given.string, names.contains(name) else {
        throw Parameters.refuse("action", "must be one of \(names.joined(separator: ", "))")
      }
      action = GroupAction(rawValue: name)
      if action != nil { try access.checkAdministrator(reply.session.peer) }
      if let action, status.sharedLog == nil {
        throw Parameters.refuse(
          "action", "is \(action.rawValue), and this daemon is in no group; start feedd with --group NAME")
      }
    }
    if let action {
      status.report(.info, "\(reply.session.description) asked for group \(action.rawValue)")
      status.groupAction(action)
    }
    try answer(reply) { out in
      if let shared = status.sharedLog?() {
        out.append(string: shared.details)
      } else {
        out.append("\"group\":null,\"log\":\"local\"")
      }
    }
  }

  /// Closes a connection. What it has not read is discarded, up to the end of a frame that it has begun to read.
  func kick(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    try access.checkAdministrator(reply.session.peer)
    guard let number = try parameters.required("connection", "the number of a connection, as clients shows it").int
    else {
      throw Parameters.refuse("connection", "must be an integer: the number of a connection, as clients shows it")
    }
    guard let session = sessions.all.first(where: { $0.number == number && !$0.isClosing }) else {
      throw Parameters.refuse(
        "connection", "is \(number), which is not an open connection; call clients for their numbers")
    }
    try answer(reply) { out in
      out.append("\"connection\":", integer: number)
      out.append(",\"uid\":", integer: session.peer.uid)
      out.append(",\"pid\":", integer: Int(session.peer.pid))
    }
    if session !== reply.session { dropPending(of: session) }
    close(
      session, reason: "kicked", message: "An administrator (uid \(reply.session.peer.uid)) closed this connection.",
      level: .warning)
    recount(session)
  }
}
