import CNats
import FeedJSON
import FeedSystem
import Glibc
import Synchronization

/// The servers of a group's log, and how a member identifies itself to them.
public struct NatsSettings: Sendable, Equatable {
  /// URLs such as `nats://127.0.0.1:4222`, which may hold a user and password, or a token.
  public var servers: [String]
  public var user: String?
  public var password: String?
  public var token: String?
  /// A credentials file as `nsc` writes it.
  public var credentials: String?
  /// Files in PEM: the authority that signed the servers' certificates, and the certificate and key of this host.
  public var authority: String?
  public var certificate: String?
  public var key: String?

  public init(servers: [String]) { self.servers = servers }

  /// Whether the connection must be encrypted.
  var isSecure: Bool { authority != nil || certificate != nil || servers.contains { $0.hasPrefix("tls://") } }
}

/// A message that a server delivered.
public final class NatsMessage: @unchecked Sendable {
  private let handle: OpaquePointer
  /// The subject of the subscription if the message came with that of a consumer; nil for answers.
  let followed: String?

  init(_ handle: OpaquePointer, followed: String?) { (self.handle, self.followed) = (handle, followed) }

  deinit { cnats_message_destroy(handle) }

  /// The subject that the message was sent to, or delivered to by a consumer.
  public var subject: String { followed ?? String(cString: cnats_message_subject(handle)) }
  public var reply: String? { cnats_message_reply(handle).map { String(cString: $0) } }
  /// Valid while the message exists.
  public var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: cnats_message_bytes(handle), count: cnats_message_count(handle))
  }

  func header(_ name: String) -> String? { cnats_message_header(handle, name).map { String(cString: $0) } }
}

public enum NatsEvent: Sendable {
  case message(NatsMessage)
  case connected
  case disconnected(reason: String)
  /// The connection is over: a server refused it.
  case closed(reason: String)
}

/// A connection to the servers of a group, with one subscription for answers and one for the messages of a consumer.
///
/// libnats reconnects on its own threads, which call `handler`.
final class NatsConnection: @unchecked Sendable {
  /// What the handlers of the library reach; it outlives the connection.
  private final class Context: Sendable {
    let handler: @Sendable (NatsEvent) -> Void
    init(_ handler: @escaping @Sendable (NatsEvent) -> Void) { self.handler = handler }
  }

  private let handle: OpaquePointer

  /// Connects. Blocks for a second for each server that does not answer.
  /// - Throws: `noLibrary` if libnats is not installed, `refused` if the settings are wrong or a server refuses them, `unreachable`
  ///   if none answers.
  init(
    _ settings: NatsSettings, name: String, inbox: String, _ handler: @escaping @Sendable (NatsEvent) -> Void
  ) throws(GroupError) {
    if let reason = cnats_load() { throw .noLibrary(String(cString: reason)) }
    let context = Unmanaged.passRetained(Context(handler)).toOpaque()
    let handlers = cnats_handlers(
      context: context,
      received: { context, subject, message in
        guard let context, let subject, let message else { return }
        let subscription = String(cString: subject)
        let received = NatsMessage(message, followed: subscription.hasSuffix(">") ? nil : subscription)
        Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().handler(.message(received))
      },
      changed: { context, event, reason in
        guard let context else { return }
        let reason = reason.map { String(cString: $0) } ?? ""
        let handler = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().handler
        switch Int(event) {
        case CNATS_CONNECTED: handler(.connected)
        case CNATS_DISCONNECTED: handler(.disconnected(reason: reason))
        case CNATS_CLOSED: handler(.closed(reason: reason))
        default: break
        }
      })
    var reason = [CChar](repeating: 0, count: 512)
    var isRefused = false
    let handle = CStrings.withPointers(settings.servers) { servers, count in
      CStrings.withPointers(
        [
          String(name.filter(\.isPlainInJSON)), settings.user, settings.password, settings.token,
          settings.credentials, settings.authority,
          settings.certificate, settings.key, inbox,
        ]
      ) { texts, _ in
        var plain = cnats_settings(
          servers: servers, server_count: Int32(count), name: texts?[0], user: texts?[1], password: texts?[2],
          token: texts?[3], credentials: texts?[4], authority: texts?[5], certificate: texts?[6], key: texts?[7],
          is_secure: settings.isSecure, inbox: texts?[8])
        return cnats_connect(&plain, handlers, &reason, reason.count, &isRefused)
      }
    }
    guard let handle else {
      let text = String(decoding: reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let (servers, cause) = (settings.publicServers, settings.explain(text))
      if isRefused { throw .refused(servers: servers, reason: cause) }
      throw .unreachable(servers: servers, reason: cause)
    }
    self.handle = handle
  }

  var isConnected: Bool { cnats_is_connected(handle) }
  /// The maximum bytes of a message; 0 if no server was connected yet.
  var maxPayload: Int { Int(cnats_max_payload(handle)) }

  /// The URL of the connected server; empty if there is none.
  var url: String {
    var text = [CChar](repeating: 0, count: 256)
    cnats_url(handle, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Sends a message. Returns the reason why it was not sent; nil if it was.
  func publish(
    _ subject: String, reply: String? = nil, identity: String? = nil,
    _ bytes: UnsafeRawBufferPointer
  ) -> String? {
    cnats_publish(handle, subject, reply, identity, bytes.baseAddress, bytes.count).map { String(cString: $0) }
  }

  /// Subscribes to one more subject, in place of the one of the call before.
  func follow(_ subject: String) -> String? { cnats_follow(handle, subject).map { String(cString: $0) } }

  /// Ends the connection. The handler may be called once more.
  func close() { cnats_close(handle) }
}

private enum CStrings {
  static func withPointers<Result>(
    _ texts: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>?, Int) -> Result
  ) -> Result {
    let copies = texts.map { $0.flatMap { strdup($0) } }
    defer { for copy in copies { free(copy) } }
    return copies.map { $0.map { UnsafePointer($0) } }.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
  }
}

extension Character {
  /// Whether the character stands for itself in a JSON string. libnats writes texts into JSON as they are.
  fileprivate var isPlainInJSON: Bool {
    // A quotation mark with a combining mark is another character.
    unicodeScalars.allSatisfy { $0 != "\"" && $0 != "\\" && $0.value >= 0x20 }
  }
}

extension NatsSettings {
  /// The reason why there is no connection; names a password that the server cannot have read.
  fileprivate func explain(_ reason: String) -> String {
    let isPlain = [user, password, token].allSatisfy { $0?.allSatisfy(\.isPlainInJSON) ?? true }
    return isPlain
      ? reason : "\(reason); libnats may not send \\ and \" in \"user\", \"password\" and \"token\": choose others"
  }

  /// The URLs without users, passwords and tokens.
  public var publicServers: String {
    servers.map { server in
      guard let at = server.lastIndex(of: "@") else { return server }
      let host = server[server.index(after: at)...]
      guard let colon = server.firstIndex(of: ":"), server[colon...].hasPrefix("://") else { return String(host) }
      return server[..<colon] + "://" + host
    }.joined(separator: ",")
  }
}

/// What a member sends.
protocol GroupTransport: AnyObject {
  /// The maximum bytes of a message with its headers that the servers take; 0 if that is not known.
  var maxPayload: Int { get }
  /// Sends a message. Returns the reason why it was not sent; nil if it was, which does not mean that it arrives.
  func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String?
  /// Receives what is sent to a subject, in place of the one of the call before. It is not below the inbox: the servers deliver
  /// only to the exact subject of a subscription.
  func follow(_ subject: String)
}

extension GroupTransport {
  /// The bytes of `wanted` that fit in a message beside `overhead` bytes and its headers.
  func room(for wanted: Int, beside overhead: Int = 0) -> Int {
    let headers = 256
    return maxPayload == 0 ? wanted : min(wanted, max(maxPayload - headers - overhead, 1024))
  }

  func request(_ subject: String, reply: String?, _ text: String) {
    _ = publish(subject, reply: reply, identity: nil, Array(text.utf8))
  }
}

/// The connection of a member. One that never was, or that a server ended for good, is replaced by a new one.
///
/// Used by one thread at a time: at the start by the engine's thread, later by that of the log.
final class NatsTransport: GroupTransport, @unchecked Sendable {
  private let settings: NatsSettings
  private let name: String
  private let inboxSubject: String
  private let inbox: GroupInbox
  private var connection: NatsConnection?
  private var reports = Reports()
  private var isOver = false
  /// Whether libnats told of a connection, and of no end of it. Otherwise it is not called: it holds its lock while it waits for the
  /// answer of a server.
  private var isUsable = false
  private var knownMaxPayload = 0

  /// Whether what a connection reports counts: until another one replaces it.
  private final class Reports: Sendable {
    let count = Atomic(true)
  }

  init(_ settings: NatsSettings, name: String, inboxSubject: String, _ inbox: GroupInbox) {
    (self.settings, self.name, self.inboxSubject, self.inbox) = (settings, name, inboxSubject, inbox)
  }

  var isConnected: Bool { connection?.isConnected ?? false }
  var url: String { isUsable ? connection?.url ?? "" : "" }
  var maxPayload: Int {
    if isUsable { knownMaxPayload = connection?.maxPayload ?? 0 }
    return knownMaxPayload
  }
  /// Whether the connection must be encrypted.
  var isSecure: Bool { settings.isSecure }
  /// Whether there are other servers than the present one.
  var hasOthers: Bool { settings.servers.count > 1 }
  /// Whether libnats does not try to connect.
  var needsConnection: Bool { connection == nil || isOver }

  /// Connects anew, with what the files of the settings hold now. The former connection stays if that fails: libnats tries to restore
  /// it.
  func connect() throws(GroupError) {
    let (inbox, reports) = (inbox, Reports())
    let other = try NatsConnection(settings, name: name, inbox: "\(inboxSubject).>") { event in
      if reports.count.load(ordering: .relaxed) { inbox.post(.nats(event)) }
    }
    self.reports.count.store(false, ordering: .relaxed)
    connection?.close()
    (connection, self.reports, isOver, isUsable) = (other, reports, false, other.isConnected)
    // Behind the last report of the former connection. libnats tells of connections that it restores.
    if isUsable { inbox.post(.nats(.connected)) }
  }

  func didConnect() { isUsable = true }
  func didDisconnect() { isUsable = false }
  /// Records that libnats gave the connection up.
  func didClose() { (isOver, isUsable) = (true, false) }

  func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String? {
    guard let connection, isUsable else { return "not connected" }
    return bytes.withUnsafeBytes { connection.publish(subject, reply: reply, identity: identity, $0) }
  }

  func follow(_ subject: String) { if isUsable { _ = connection?.follow(subject) } }

  func close() {
    connection?.close()
    connection = nil
  }
}

/// A message that the stream delivered or that answers this member.
struct GroupInput {
  let subject: String
  let reply: String?
  let bytes: UnsafeRawBufferPointer
  /// The headers `Status`, `Nats-Last-Consumer` and `Nats-Consumer-Stalled` of a message without bytes.
  var status: String?
  var lastConsumer: UInt64?
  var stalled: String?
  /// What keeps `bytes` alive.
  let owner: AnyObject
}

final class GroupReport {
  private var lines: [(isWarning: Bool, text: String)] = []

  func note(_ text: String, isWarning: Bool) { lines.append((isWarning, text)) }

  func take() -> [(isWarning: Bool, text: String)] {
    defer { lines.removeAll() }
    return lines
  }
}

/// The bytes of batches that were read from the stream and not executed yet. Any thread may use it.
final class ByteCounter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }
  fileprivate func add(_ bytes: Int) { count.add(bytes, ordering: .relaxed) }
}

/// The bytes of a received batch: those of a message, or joined from those of several. Counts them until the batch is executed.
final class HeldFrames: @unchecked Sendable {
  let frames: UnsafeRawBufferPointer
  /// Nil if the bytes are a copy.
  private let owner: AnyObject?
  private let counter: ByteCounter

  init(_ frames: UnsafeRawBufferPointer, _ owner: AnyObject?, _ counter: ByteCounter) {
    (self.frames, self.owner, self.counter) = (frames, owner, counter)
    counter.add(frames.count)
  }

  convenience init(copying bytes: [UInt8], _ counter: ByteCounter) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    copy.copyBytes(from: bytes)
    self.init(UnsafeRawBufferPointer(copy), nil, counter)
  }

  deinit {
    counter.add(-frames.count)
    if owner == nil { frames.deallocate() }
  }
}
