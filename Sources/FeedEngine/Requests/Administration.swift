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

/// `stats`, `clients` and `logLevel`.
extension Engine {
  func stats(_ reply: Reply) throws(FeedError) {
    let held = heldBytes
    try answer(reply) { out in
      appendNumbers(held: held, to: &out)
      guard access.isPrivileged(reply.session.peer) else { return }
      out.append(",\"pid\":", integer: Int(identity.pid))
      if let state = identity.state { out.append(",\"state\":", quoted: state) }
      ownWork.reports.append(to: &out)
    }
  }

  /// Appends the numbers of `stats` as a JSON object.
  public func appendStatistics(to out: inout ByteBuffer) {
    out.append(UInt8(ascii: "{"))
    appendNumbers(held: heldBytes, to: &out)
    out.append(UInt8(ascii: "}"))
  }

  /// The bytes that are stored, and those that are held for connections.
  public var accountedBytes: Int {
    let stored = catalog.accounts.total
    return stored.bytes + stored.definitionBytes + sessions.quotas.bytes
  }

  /// The bytes that are held for connections. They include the answers to a JSON-RPC batch, so they are counted before one is written.
  private var heldBytes: Int { sessions.all.reduce(sessions.quotas.leftBytes) { $0 + $1.held } }

  private func appendNumbers(held: Int, to out: inout ByteBuffer) {
    let process = status.process()
    let gauges: [(StaticString, Int)] = [
      ("revision", Int(truncatingIfNeeded: catalog.revision)),
      ("uptime", Int(now.since(status.startedAt) / 1_000_000_000)),
      ("connectionsOpen", sessions.quotas.connections),
      ("feeds", catalog.feeds.count),
      ("elements", catalog.accounts.total.elements),
      ("elementBytes", catalog.accounts.total.bytes),
      ("definitionBytes", catalog.accounts.total.definitionBytes),
      ("selected", catalog.accounts.total.selected),
      ("viewRows", catalog.accounts.total.viewRows),
      ("historyBytes", catalog.historyBytes),
      ("memoryBytes", process.memoryBytes),
      ("logBytes", process.imageBytes + process.segmentBytes),
      ("imageBytes", process.imageBytes),
      ("segmentBytes", process.segmentBytes),
      ("imagedAt", process.imagedAt),
      ("watches", watches.count),
      ("queuedBytes", sessions.all.reduce(0) { $0 + $1.output.count }),
      ("heldBytes", held),
    ]
    let totals: [(StaticString, UInt64)] = [
      ("connections", status.counters.connections), ("refusedConnections", status.counters.refusedConnections),
      ("requests", status.counters.requests), ("errors", status.counters.errors), ("commits", status.counters.commits),
      ("deltas", status.counters.deltas), ("composedDeltas", status.counters.composedDeltas),
      ("snapshots", status.counters.snapshots),
      ("resets", status.counters.resets), ("bytesIn", status.counters.bytesIn), ("bytesOut", status.counters.bytesOut),
    ]
    for (place, gauge) in gauges.enumerated() {
      out.appendMember(gauge.0, isFirst: place == 0)
      out.append(integer: gauge.1)
    }
    for total in totals {
      out.appendMember(total.0, isFirst: false)
      out.append(integer: total.1)
    }
    out.append(",\"users\":[")
    for (place, uid) in catalog.accounts.owners.enumerated() {
      out.append(place > 0 ? ",{\"uid\":" : "{\"uid\":", integer: uid)
      append(catalog.accounts.usage(of: uid), to: &out)
      out.append(UInt8(ascii: "}"))
    }
    out.append(UInt8(ascii: "]"))
    guard let shared = status.sharedLog?() else { return }
    shared.append(to: &out)
    out.append(shared.log == "connected" ? ",\"logReachable\":1" : ",\"logReachable\":0")
    out.append(",\"logPosition\":", integer: shared.position)
    out.append(",\"logLast\":", integer: shared.last)
    out.append(",\"members\":", integer: shared.members)
  }

  func logLevel(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    if let level = parameters.member("level") {
      let before = status.threshold.name
      guard level.text.count <= 64, let wanted = level.string.flatMap(LogLevel.init(name:)) else {
        throw Parameters.refuse("level", "must be one of \(LogLevel.allCases.map(\.name).joined(separator: ", "))")
      }
      status.threshold = wanted
      status.report(.info, "\(reply.session.description) changed the log level from \(before) to \(wanted.name)")
    }
    let name = status.threshold.name
    try answer(reply) { out in
      out.append("\"level\":", quoted: name)
    }
  }

  func clients(_ parameters: Parameters, _ reply: Reply) {
    // Before the answer is written, as for `heldBytes`.
    var rest = sessions.all.map { (handle: $0.handle, held: $0.held) }[...]
    let (peer, own) = (reply.session.peer, reply.session.handle)
    let listBytes = rest.count * MemoryLayout<(SessionHandle, Int)>.stride
    let job = ListJob(of: self, for: reply, listBytes: listBytes) { out in
      out.append("\"clients\":[")
    } _: { [unowned self] in
      var readable = access.readableFeeds(by: peer)
      return { [unowned self] out in
        guard let next = rest.popFirst() else { return false }
        guard let session = sessions[next.handle] else { return true }
        out.append(UInt8(ascii: "{"))
        append(session, held: next.held, &readable, to: &out)
        out.append(next.handle == own ? ",\"self\":true}" : "}")
        return true
      }
    }
    start(job, for: reply, parameters)
  }

  /// - Parameter readable: the feeds that the caller may read. Others are not named.
  private func append(
    _ session: Session, held: Int, _ readable: inout ReadableFeeds, to out: inout ByteBuffer
  ) {
    out.append("\"connection\":", integer: session.number)
    out.append(",\"uid\":", integer: session.peer.uid)
    out.append(",\"pid\":", integer: Int(session.peer.pid))
    out.append(",\"name\":", quoted: session.client.name)
    out.append(",\"queued\":", integer: session.output.count)
    out.append(",\"held\":", integer: held)
    out.append(",\"lag\":", integer: session.watches.map(\.lag).max() ?? 0)
    out.append(",\"resets\":", integer: session.client.resets)
    out.append(",\"requests\":", integer: session.client.requests)
    out.append(",\"connected\":", integer: now.since(session.client.connectedAt) / 1_000_000_000)
    out.append(",\"watches\":[")
    var isFirst = true
    for watch in session.watches where readable.contains(watch.channel.feed) {
      if !isFirst { out.append(UInt8(ascii: ",")) }
      isFirst = false
      out.appendJSONString(watch.channel.feed.name)
    }
    out.append(UInt8(ascii: "]"))
  }
}

extension ByteBuffer {
  fileprivate mutating func appendMember(_ name: StaticString, isFirst: Bool) {
    append(isFirst ? "\"" : ",\"")
    append(name)
    append("\":")
  }
}
