import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedModel
@testable import FeedSources

/// A set with one database, on a clock that the test moves.
private final class Sources {
  private let set: SourceSet
  private(set) var now: UInt64 = 1_000_000_000_000

  init(
    _ database: String, makeEvents: (() throws(FileEventsError) -> FileEvents)? = nil
  ) throws {
    set = try makeEvents.map { try SourceSet(makeEvents: $0) } ?? SourceSet()
    arrange(database)
  }

  func arrange(_ database: String, query: String = "SELECT id, v FROM t") {
    let specification = SourceSpecification(
      name: "f", database: database, query: query, id: "id", section: nil, maxRows: 100, maxRowBytes: 1000,
      maxBytes: 10000)
    set.arrange([specification], now: now)
  }

  /// The nanoseconds until the next look.
  func delay() throws -> UInt64 { try require(set.nextDeadline) - now }

  func attend() { set.attend(now: now) }

  /// Moves the clock to the next look, and returns the description of its report.
  func text() throws -> String {
    now += try delay()
    return try report()
  }

  /// Describes the next report. Begins looks that are due meanwhile.
  func report() throws -> String {
    var reports: [SourceReport] = []
    while reports.isEmpty {
      attend()
      try require(try !Readiness.readable.wait(on: set.reportDescriptor, timeout: testTimeout).isEmpty)
      reports = set.takeReports(now: now)
    }
    expectEqual(reports.count, 1)
    let report = reports[0]
    let note = report.blindness.map { " (\($0))" } ?? ""
    switch report.outcome {
    case .unchanged: return "unchanged" + note
    case .failed(let reason): return reason + note
    case .rows(let rows): return String(decoding: rows.bytes, as: UTF8.self) + note
    }
  }

  /// Waits for events of files until one causes a look, and handles them.
  func waitForEvent() throws {
    let events = try require(set.eventDescriptor)
    let before = set.nextDeadline
    while set.nextDeadline == before {
      try require(try !Readiness.readable.wait(on: events, timeout: testTimeout).isEmpty, "no event")
      set.readEvents(now: now)
    }
  }

  func startOver() { set.startOver(now: now) }
}

@Suite("The databases of managed feeds") struct SourceSetTests {
  private let directory: TemporaryDirectory
  /// The folder, without links.
  private let root: String

  init() throws {
    directory = try TemporaryDirectory()
    root = try require(FilePath.resolved(directory.path))
  }

  private func make(_ path: String, _ value: String) throws {
    var parent = root
    for name in path.split(separator: "/").dropLast() {
      parent += "/\(name)"
      if mkdir(parent, 0o755) != 0 { expectEqual(errno, EEXIST) }
    }
    try Database(path: "\(root)/\(path)", access: .create, busyTimeout: 5000).execute(
      "CREATE TABLE t (id, v); INSERT INTO t VALUES (1, '\(value)')")
  }

  private func move(_ from: String, _ to: String) { expectEqual(rename("\(root)/\(from)", "\(root)/\(to)"), 0) }

  private func row(_ value: String) -> String { #"{"id":1,"v":"\#(value)"}"# }

  @Test("whatever makes the path name another database causes a look", arguments: 0..<7)
  func exchanges(number: Int) throws {
    try make("a/b/c/db", "old")
    expectEqual(symlink("a", "\(root)/link"), 0)
    expectEqual(symlink("\(root)/link/b/./c/../c", "\(root)/second"), 0)
    expectEqual(symlink("db", "\(root)/a/b/c/file"), 0)
    let paths = ["a/b/c/db", "a/b/c/db", "link/b/c/db", "second/db", "second/file", "second/file", "a/b/c/db"]
    let sources = try Sources("\(root)/\(paths[number])")
    try expectEqual(sources.text(), row("old"))
    try expectEqual(sources.text(), "unchanged")
    switch number {
    case 0:  // The directory is exchanged.
      try make("a/b/new/db", "new")
      move("a/b/c", "a/b/former")
      move("a/b/new", "a/b/c")
    case 1, 3:  // A directory far above is exchanged, also one behind two links.
      try make("new/b/c/db", "new")
      move("a", "former")
      move("new", "a")
    case 2:  // A link on the way is exchanged.
      try make("other/b/c/db", "new")
      expectEqual(symlink("other", "\(root)/next"), 0)
      move("next", "link")
    case 4:  // The link that is the last name is exchanged.
      try make("a/b/c/other", "new")
      expectEqual(symlink("other", "\(root)/next"), 0)
      move("next", "a/b/c/file")
    case 5:  // The file behind it is exchanged.
      try make("a/b/c/other", "new")
      move("a/b/c/other", "a/b/c/db")
    default:  // The file is removed and made again.
      expectEqual(unlink("\(root)/a/b/c/db"), 0)
      try sources.waitForEvent()
      try expect(sources.text().hasPrefix("there is no file"))
      try make("a/b/c/db", "new")
    }
    // The moment between two renames may be noticed first.
    var text = ""
    while text != row("new") {
      try sources.waitForEvent()
      text = try sources.text()
      expect(
        text == row("new") || text.hasPrefix("there is no file") || text == "unchanged"
          || text.contains("no such table"))
    }
    try Database(path: "\(root)/\(paths[number])", access: .readWrite).execute("UPDATE t SET v = 'newer'")
    try sources.waitForEvent()
    try expectEqual(sources.text(), row("newer"))
  }

  @Test("a database is found when the directories above it are created one by one")
  func created() throws {
    let sources = try Sources("\(root)/a/b/db")
    try expect(sources.text().hasPrefix("there is no file"))
    for path in ["a", "a/b"] {
      expectEqual(mkdir("\(root)/\(path)", 0o755), 0)
      try sources.waitForEvent()
      try expect(sources.text().hasPrefix("there is no file"))
    }
    try make("a/b/db", "new")
    var text = ""
    while text != row("new") {
      try sources.waitForEvent()
      text = try sources.text()
    }
  }

  @Test("without a queue of events, the database is looked at every two seconds, until there is one")
  func noQueue() throws {
    try make("db", "old")
    let full = SystemError(code: EMFILE, operation: "create a queue of file events")
    var isFull = true
    let sources = try Sources("\(root)/db") { () throws(FileEventsError) in
      if isFull { throw .system(full) }
      return try FileEvents()
    }
    try expectEqual(sources.text(), "\(row("old")) (\(full))")
    try expectEqual(sources.delay(), 2_000_000_000)
    try Database(path: "\(root)/db", access: .readWrite).execute("UPDATE t SET v = 'new'")
    try expectEqual(sources.text(), "\(row("new")) (\(full))")
    isFull = false
    try expectEqual(sources.text(), "unchanged")
    try expectEqual(sources.delay(), 10_000_000_000)
    try Database(path: "\(root)/db", access: .readWrite).execute("UPDATE t SET v = 'newer'")
    try sources.waitForEvent()
    try expectEqual(sources.text(), row("newer"))
  }

  @Test("starting over looks at once, and ends a query that never ends")
  func startingOver() throws {
    try make("db", "old")
    let sources = try Sources("\(root)/db")
    try expectEqual(sources.text(), row("old"))
    sources.startOver()
    try expectEqual(sources.delay(), 0)
    try expectEqual(sources.text(), row("old"))
    sources.arrange(
      "\(root)/db",
      query: "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT count(*) id FROM n")
    sources.attend()
    sources.arrange("\(root)/db", query: "SELECT id FROM t")
    try expectEqual(sources.report(), #"{"id":1}"#)
  }

  @Test("a failure is tried again after half a second to ten seconds, a change at once")
  func backOff() throws {
    let sources = try Sources("\(root)/db")
    var delays: [UInt64] = []
    for _ in 0..<7 {
      try expect(sources.text().hasPrefix("there is no file"))
      delays.append(try sources.delay() / 100_000_000)
    }
    expectEqual(delays, [5, 10, 20, 40, 80, 100, 100])
    sources.startOver()
    try expect(sources.text().hasPrefix("there is no file"))
    try expectEqual(sources.delay() / 100_000_000, 5)
  }
}
