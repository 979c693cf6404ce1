import FeedModel
import FeedSQLite
import FeedStorage
import Glibc

@testable import FeedEngine
@testable import FeedServer

/// Recovers a state that was changed from outside: each line of the input is an edit of a sound file.
///
/// The file was written by a daemon of schema 1, whose rows have no checksums, so that changed rows reach the readers.
/// `fCOLUMN ROW VALUE` writes a value into a column of `columns`, and `xOFFSET VALUE` a byte into the file. Recovery may refuse
/// the state or take it; what it takes must hold all invariants.
func fuzzRecovery(_ bytes: UnsafeRawBufferPointer) {
  StateTemplate.write(bytes)
  let identity = ServerIdentity(version: "0", epoch: "e", pid: 1, uid: 0, durability: "process")
  let engine = Engine(
    limits: Limits(), identity: identity, seed: 1, isDurable: true, now: Instant(nanoseconds: 1_000_000_000))
  do throws(StorageError) {
    _ = try StateCheck.run(StateTemplate.directory) { engine }
  } catch {
    precondition(!"\(error)".isEmpty, "an error without a text")
    return
  }
  engine.checkInvariants()
}

/// A sound file and its edits.
enum StateTemplate {
  static let directory = "/dev/shm/feedd-fuzz-\(getpid())"
  private static let path = StateFile.path(in: directory)

  private static let columns: [(table: String, column: String)] = [
    ("image_feed", "definition"), ("image_feed", "given"), ("image_feed", "name"), ("image_feed", "revision"),
    ("image_feed", "bin_revisions"), ("image_feed", "selection"), ("image_feed", "history_bases"), ("element", "text"),
    ("element", "arrival"), ("element", "changed_at"), ("section_rows", "section"), ("section_rows", "first"),
    ("section_rows", "numbers"), ("history", "bin"), ("history", "records"), ("journal", "requests"),
    ("journal", "revision"), ("journal", "at"), ("journal", "more"), ("journal", "limits"), ("limits", "json"),
    ("image", "revision"), ("image", "at"), ("image", "journal"), ("image", "bytes"), ("image", "complete"),
  ]

  /// The file's bytes, with its log moved into it.
  private static let template: [UInt8] = {
    let corpus = "Tests/FeedStorageTests/Corpus/both/feedd.sqlite"
    mkdir(directory, 0o700)
    for suffix in ["", "-wal"] { save(load(corpus + suffix), path + suffix) }
    guard let database = try? Database(path: path, access: .readWrite),
      (try? database.text("PRAGMA journal_mode = DELETE")) == "delete"
    else { preconditionFailure("cannot read \(corpus); run scripts/fuzz from the package") }
    _ = atexit {
      unlink(StateFile.path(in: StateTemplate.directory))
      rmdir(StateTemplate.directory)
    }
    return load(path)
  }()

  /// Writes the file with the edits of the input.
  static func write(_ edits: UnsafeRawBufferPointer) {
    var bytes = template
    var rows: [Substring] = []
    for line in String(decoding: edits, as: UTF8.self).split(separator: "\n") {
      let rest = line.dropFirst()
      guard line.first == "x" else {
        rows.append(rest)
        continue
      }
      let numbers = rest.split(separator: " ").compactMap { Int($0) }
      if numbers.count == 2, bytes.indices.contains(numbers[0]) {
        bytes[numbers[0]] = UInt8(truncatingIfNeeded: numbers[1])
      }
    }
    save(bytes, path)
    if rows.isEmpty { return }
    guard let database = try? Database(path: path, access: .readWrite) else { return }
    try? database.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN")
    for row in rows { try? edit(row, database) }
    try? database.execute("COMMIT")
  }

  private static func edit(_ text: Substring, _ database: Database) throws(SQLiteError) {
    let words = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count == 3, let number = Int(words[0]), let row = Int64(words[1]) else { return }
    guard columns.indices.contains(number) else { return }
    let (table, column) = columns[number]
    let key = table == "journal" ? "seq" : "id"
    let statement = try database.prepare(
      "UPDATE \(table) SET \(column) = ? WHERE \(key) = (SELECT \(key) FROM \(table) ORDER BY \(key) LIMIT 1 OFFSET ?)",
      isKept: false)
    try statement.bind(row, at: 2)
    switch column {
    case "requests":
      let request = Array(words[2].utf8)
      try run(statement, blob: withUnsafeBytes(of: UInt32(request.count).bigEndian, Array.init) + request)
    case "records": try run(statement, blob: hexadecimal(words[2]))
    default:
      if let integer = Int64(words[2]) { try statement.run(integer) } else { try statement.run(String(words[2])) }
    }
  }

  private static func run(_ statement: Statement, blob: [UInt8]) throws(SQLiteError) {
    var failure: SQLiteError?
    blob.withUnsafeBytes { bytes in
      do throws(SQLiteError) {
        try statement.run(Lent.blob(bytes))
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }

  /// The bytes of pairs of hexadecimal digits; other characters are ignored.
  private static func hexadecimal(_ text: Substring) -> [UInt8] {
    let digits = text.compactMap { $0.hexDigitValue }
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  private static func load(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { preconditionFailure("cannot open \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  private static func save(_ bytes: [UInt8], _ path: String) {
    guard let file = fopen(path, "w") else { preconditionFailure("cannot create \(path)") }
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }
}
