import FeedSystem
import Glibc
import TestSupport
import Testing

/// A generated family of hostile requests: every method, every parameter, values of every kind around every limit.
@Suite("Hostile requests")
struct HostileRequestTests {
  /// Values around the limits: of names (128, and 257 for `collection/bin`), of nesting (`maxDepth` 64), of elements
  /// (`maxElementBytes`, `maxRequestRows`), of definitions, of paths, and of integers.
  private static let values: [String] = {
    func text(_ count: Int) -> String { "\"" + String(repeating: "x", count: count) + "\"" }
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    func list(_ count: Int, of element: String) -> String {
      "[" + Array(repeating: element, count: count).joined(separator: ",") + "]"
    }
    var values = [
      "null", "true", "0", "-1", "1e400", "0.5", "\"\"", "[]", "{}", "\"\\ud800\"", "\"a/b/c\"", "\"$[?@.x\"",
    ]
    values += ["9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616"]
    values += [127, 128, 129, 257, 258, 1999, 2000, 2001, 30_000].map(text)
    values += [
      "\"" + String(repeating: "\\u0000", count: 300) + "\"", "\"" + String(repeating: "é", count: 300) + "\"",
    ]
    values += [59, 60, 61, 62, 63].map(nested)
    values += [49, 50, 51, 2000].map { list($0, of: "0") }
    values += [list(200, of: "[0,0]"), list(200, of: "\"a\""), list(60, of: "{\"id\":1}"), list(200, of: "{}")]
    values += ["{\"method\":\"ping\"}", list(20, of: "{\"method\":\"define\",\"params\":{\"feed\":\"z\"}}")]
    values += ["{\"" + String(repeating: "k", count: 5000) + "\":1}", "{\"epoch\":\(text(20_000)),\"revision\":-1}"]
    return values
  }()

  private static let limits = [
    "--max-depth", "64", "--max-element-bytes", "2000", "--max-request-rows", "50", "--max-path-bytes", "2000",
    "--max-definition-bytes", "2000", "--max-definition-entries", "50", "--max-feeds", "20", "--max-elements", "1000",
  ]

  private func setUp(_ client: RawClient) throws {
    for feed in HostileRequests.feeds {
      let answer = try HostileTests.ask(client, feed.method, feed.params)
      expect(answer.has("result"), "\(feed): \(answer)")
    }
  }

  @Test("every hostile request is answered once, and the daemon is as before")
  func everyParameter() throws {
    let daemon = try DaemonProcess(Self.limits)
    let other = try daemon.connect()
    try setUp(other)
    let before = try Footprint(of: daemon.process.pid)
    let descriptors = before.descriptors
    var tried: Set<String> = []
    for example in HostileRequests.examples {
      let members = example.members.map(\.name).filter { tried.insert("\(example.method) \($0)").inserted }
      if members.isEmpty { continue }
      let client = try daemon.connect()
      var sent = 0
      for member in members {
        for value in Self.values {
          let params = example.params(with: member, value)
          sent += 1
          try client.send(#"{"jsonrpc":"2.0","id":\#(sent),"method":"\#(example.method)","params":\#(params)}"#)
          let answer = try Self.answer(client)
          let isAnswer = Self.isAnswer(answer, to: sent)
          expect(isAnswer, "\(example.method) \(params.prefix(200)): \(answer.prefix(200))")
        }
      }
      try expect(HostileTests.ask(other, "ping").has("result"), "after \(example)")
    }
    try expect(HostileTests.waitForConnections(1, other))
    let after = try Footprint(of: daemon.process.pid)
    expectEqual(after.descriptors, descriptors)
    // What the requests stored and what the allocator keeps is small.
    expect(Footprint.isBelow(after.memory, before.memory + (64 << 20)))
    try expect(HostileTests.ask(other, "verify", #"{"feed":"t"}"#).has("result"))
  }

  /// Elements that stay keep what is deleted around them from the end of the heap, where malloc returns memory by itself.
  @Test("memory that is not needed any more is returned to the system")
  func freedMemory() throws {
    let daemon = try DaemonProcess(["--bookmark-interval", "1"])
    let (client, watcher) = (try daemon.connect(), try daemon.connect())
    let text = String(repeating: "x", count: 1000)
    try expect(HostileTests.ask(client, "define", #"{"feed":"c","kind":"collection","id":"$[0]"}"#).has("result"))
    try expect(HostileTests.ask(client, "define", #"{"feed":"quiet","kind":"array"}"#).has("result"))
    try expect(HostileTests.ask(watcher, "watch", #"{"feed":"quiet","initial":false}"#).has("result"))
    for first in stride(from: 0, to: 80_000, by: 4000) {
      let elements = (first..<first + 4000).map { #"[\#($0),\#($0 % 20),"\#(text)"]"# }.joined(separator: ",")
      try expect(HostileTests.ask(client, "update", #"{"feed":"c","elements":[\#(elements)]}"#).has("result"))
    }
    let full = try Footprint(of: daemon.process.pid).memory
    try expect(HostileTests.ask(client, "delete", #"{"feed":"c","where":"@[1] != 0"}"#).has("result"))
    var isReturned = false
    // Each change gives the watcher a bookmark within a second or two.
    for change in 0..<60 where !isReturned {
      try expect(HostileTests.ask(client, "update", #"{"feed":"c","element":[0,0,\#(change)]}"#).has("result"))
      try expectEqual(watcher.receive()?.contains(#""method":"bookmark""#), true)
      isReturned = Footprint.isBelow(try Footprint(of: daemon.process.pid).memory, full - (48 << 20))
    }
    expect(isReturned)
  }

  /// Receives frames until one is no notification.
  private static func answer(_ client: RawClient) throws -> String {
    while let text = try client.receive() {
      if !text.hasPrefix(#"{"jsonrpc":"2.0","method":"#) { return text }
    }
    throw TestFailure("the daemon closed the connection")
  }

  /// Whether an answer has the id of its request, or null if the request could not be parsed, and a result or an error.
  private static func isAnswer(_ answer: String, to id: Int) -> Bool {
    guard answer.contains("\"result\":") || answer.contains("\"error\":") else { return false }
    return answer.contains("\"id\":\(id),") || answer.contains("\"id\":null,\"error\":")
  }
}

/// What a process uses.
struct Footprint {
  /// Bytes of resident memory.
  let memory: Int
  /// Open descriptors.
  let descriptors: Int

  init(of pid: Int32) throws {
    let status = String(decoding: try SmallFile.read("/proc/\(pid)/statm"), as: UTF8.self).split(separator: " ")
    memory = (status.count > 1 ? Int(status[1]) ?? 0 : 0) * 4096
    var count = 0
    guard let directory = opendir("/proc/\(pid)/fd") else { throw TestFailure("cannot list descriptors of \(pid)") }
    defer { closedir(directory) }
    while readdir(directory) != nil { count += 1 }
    descriptors = count
  }

  /// Whether a process has less memory than `bound`. The sanitizers keep several bytes for each byte, and the one of addresses
  /// keeps freed memory, so the tests that they observe do not bound the memory.
  static func isBelow(_ memory: Int, _ bound: Int) -> Bool {
    #if ADDRESS_SANITIZER || THREAD_SANITIZER
      return true
    #else
      return memory < bound
    #endif
  }
}
