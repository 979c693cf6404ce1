import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

/// A daemon with a configuration file and a database of contacts.
final class ConfiguredDaemon {
  let directory: TemporaryDirectory
  private(set) var daemon: DaemonProcess
  private let arguments: [String]
  var database: String { directory.file("contacts.sqlite") }

  /// - Parameters:
  ///   - contacts: SQL that creates the database; nil for no database.
  ///   - isKept: whether the daemon has a state directory.
  init(_ configuration: String, contacts: String? = nil, arguments: [String] = [], isKept: Bool = false) throws {
    directory = try TemporaryDirectory()
    if let contacts { try Database(path: directory.file("contacts.sqlite"), access: .create).execute(contacts) }
    try SmallFile.replace(directory.file("feedd.json"), with: Array(configuration.utf8))
    let state = isKept ? ["--state", directory.file("state")] : []
    self.arguments = ["--config", directory.file("feedd.json")] + state + arguments
    daemon = try DaemonProcess(self.arguments, directory: directory)
  }

  /// Stops the daemon and starts it again.
  func restart(signal: Int32) throws {
    try daemon.stop(signal: signal)
    daemon = try DaemonProcess(arguments, directory: directory)
  }

  /// Opens the database as another program.
  func open() throws -> Database { try Database(path: database, access: .create, busyTimeout: 5000) }

  /// Replaces the configuration and reloads it.
  func reload(_ configuration: String) throws {
    try SmallFile.replace(directory.file("feedd.json"), with: Array(configuration.utf8))
    daemon.process.signal(SIGHUP)
    try daemon.notify.wait(for: "RELOADING=1", orEndOf: daemon.process)
    try daemon.notify.wait(for: "READY=1", orEndOf: daemon.process)
  }

  /// Watches a feed on a new connection.
  func watch(_ feed: String) throws -> RawClient {
    let client = try daemon.connect()
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"\#(feed)"}}"#)
    return client
  }

  /// Sends a request on a new connection and returns the answer.
  func ask(_ method: String, _ params: String) throws -> JSONValue {
    let client = try daemon.connect()
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try client.receiveJSON()
  }
}
