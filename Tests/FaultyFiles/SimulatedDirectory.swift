import FaultyDisk
import FeedSystem
import Glibc

/// A directory whose segments are in memory, and which knows what is synced, so that a test can simulate a loss of power.
///
/// The image is a real file, because SQLite writes it; the simulated disk below SQLite (SimulatedDisk.h) knows what of it is
/// synced, and which calls fail. Everything runs on one thread.
public final class SimulatedDirectory: LogDirectory, @unchecked Sendable {
  /// A change of the names of files that is not synced.
  private enum Change {
    case set(String, SimulatedFile)
    case remove(String)
  }

  /// The path of the real files.
  public let path: String
  /// The bytes that segments and image may take; nil for any number.
  public var capacity: Int?
  private var files: [String: SimulatedFile] = [:]
  /// The files that a loss of power leaves for certain, and the changes since.
  private var durable: [String: SimulatedFile] = [:]
  private var changes: [Change] = []
  /// The names of real files that have replaced another one, which is kept under a name of its own until the next sync.
  private var replaced: Set<String> = []

  public init(_ path: String) {
    self.path = path
  }

  private func place(_ name: String) -> String { "\(path)/\(name)" }
  private static func isReal(_ name: String) -> Bool { !name.hasPrefix("log-") }

  public func names() throws(SystemError) -> [String] { files.keys.sorted() }

  public func open(_ name: String) throws(SystemError) -> any LogFile {
    guard let file = files[name] else { throw SystemError(code: ENOENT, operation: "open", path: name) }
    return OpenFile(file, self)
  }

  public func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    if simulated_disk_allocate() != Int32(FAULTY_CALL_WORKS) || freeBytes < size {
      throw SystemError(code: ENOSPC, operation: "allocate", path: name)
    }
    let file = SimulatedFile(size: size)
    change(.set(name, file))
    if isZeroed { try OpenFile(file, self).sync() }
    return OpenFile(file, self)
  }

  public func rename(_ name: String, to other: String) throws(SystemError) {
    if Self.isReal(name) {
      if !replaced.contains(other) {
        unlink(place(other) + ".before")
        if link(place(other), place(other) + ".before") == 0 || errno == ENOENT { replaced.insert(other) }
      }
      guard simulated_disk_rename(place(name), place(other)) == 0 else {
        throw SystemError(code: errno, operation: "rename", path: name)
      }
      return
    }
    guard let file = files[name] else { throw SystemError(code: ENOENT, operation: "rename", path: name) }
    change(.set(other, file))
    change(.remove(name))
  }

  public func remove(_ name: String) throws(SystemError) {
    if Self.isReal(name) {
      unlink(place(name))
      simulated_disk_forget(place(name))
    } else if files[name] != nil {
      change(.remove(name))
    }
  }

  private func change(_ change: Change) {
    Self.apply(change, to: &files)
    changes.append(change)
  }

  private static func apply(_ change: Change, to files: inout [String: SimulatedFile]) {
    switch change {
    case .set(let name, let file): files[name] = file
    case .remove(let name): files[name] = nil
    }
  }

  public func sync() throws(SystemError) {
    if simulated_disk_sync() != Int32(FAULTY_CALL_WORKS) { throw SystemError(code: EIO, operation: "sync directory") }
    if simulated_disk_ignores_syncs() != 0 { return }
    durable = files
    changes = []
    for name in replaced { unlink(place(name) + ".before") }
    replaced = []
  }

  public var freeBytes: Int {
    guard let capacity else { return 1 << 40 }
    let real = ["feedd.sqlite", "feedd.sqlite.new"].reduce(0) { $0 + (FilePath.size(of: place($1)) ?? 0) }
    return max(0, capacity - files.values.reduce(real) { $0 + $1.size })
  }

  /// Leaves what a loss of power might leave: what is synced, and of each later change something or nothing.
  /// - Parameter random: returns a random number below a bound.
  public func losePower(_ random: (Int) -> Int) {
    // Names change in their order, or each by itself.
    let isOrdered = random(2) == 0
    let survivors = random(changes.count + 1)
    for (place, change) in changes.enumerated() where isOrdered ? place < survivors : random(2) == 0 {
      Self.apply(change, to: &durable)
    }
    changes = []
    files = durable
    var seen: Set<ObjectIdentifier> = []
    for name in files.keys.sorted() {
      guard let file = files[name], seen.insert(ObjectIdentifier(file)).inserted else { continue }
      file.losePower(random)
    }
    for name in replaced.sorted() {
      let before = place(name) + ".before"
      if random(2) == 0 {
        simulated_disk_forget(place(name))
        if Glibc.rename(before, place(name)) != 0 { unlink(place(name)) }
      } else {
        unlink(before)
      }
    }
    replaced = []
  }

  /// Whether a file has a name.
  fileprivate func has(_ file: SimulatedFile, named name: String) -> Bool { files[name] === file }
}

/// The content of a file, and what of it is synced.
private final class SimulatedFile {
  private struct Change {
    let offset: Int
    let bytes: [UInt8]
    /// A sync failed since: the system may have dropped the change, and later syncs do not save it.
    var isPoisoned = false
  }

  private static let sector = 512
  private(set) var bytes: [UInt8]
  private var durable: [UInt8]
  private var changes: [Change] = []
  /// Whether a sync succeeded: until then the allocation may be lost, too.
  private var wasSynced = false

  init(size: Int) {
    bytes = [UInt8](repeating: 0, count: size)
    durable = bytes
  }

  var size: Int { bytes.count }

  func write(_ new: [UInt8], at offset: Int) {
    bytes.replaceSubrange(offset..<offset + new.count, with: new)
    changes.append(Change(offset: offset, bytes: new))
  }

  func failSync() {
    for place in changes.indices { changes[place].isPoisoned = true }
  }

  func sync() {
    wasSynced = true
    var rest: [Change] = []
    for change in changes {
      if change.isPoisoned {
        rest.append(change)
      } else {
        durable.replaceSubrange(change.offset..<change.offset + change.bytes.count, with: change.bytes)
      }
    }
    // A change that was dropped does not come back over one that was made later.
    changes = rest.filter { old in
      !changes.contains { new in
        !new.isPoisoned && new.offset <= old.offset && new.offset + new.bytes.count >= old.offset + old.bytes.count
      }
    }
  }

  func losePower(_ random: (Int) -> Int) {
    for change in changes {
      let choice = random(4)
      if choice == 1 { continue }
      var start = 0
      while start < change.bytes.count {
        let end = min(start + Self.sector - (change.offset + start) % Self.sector, change.bytes.count)
        if choice != 2 || random(2) == 0 {
          durable.replaceSubrange(change.offset + start..<change.offset + end, with: change.bytes[start..<end])
        }
        start = end
      }
    }
    changes = []
    if !wasSynced && random(4) == 0 { durable = [] }
    bytes = durable
    wasSynced = true
  }
}

/// A file by the name with which it was opened.
private final class OpenFile: LogFile, @unchecked Sendable {
  private let file: SimulatedFile
  private let directory: SimulatedDirectory

  init(_ file: SimulatedFile, _ directory: SimulatedDirectory) {
    self.file = file
    self.directory = directory
  }

  func size(named name: String) -> Int? { directory.has(file, named: name) ? file.size : nil }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    let bytes = Array(first) + Array(second)
    switch simulated_disk_write() {
    case Int32(FAULTY_CALL_WORKS):
      file.write(bytes, at: offset)
      return bytes.count
    case Int32(FAULTY_CALL_FAILS):
      file.write(Array(bytes[..<(bytes.count / 2)]), at: offset)
      throw SystemError(code: EIO, operation: "write")
    default: throw SystemError(code: ENOSPC, operation: "write")
    }
  }

  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    let count = max(0, min(space.count, file.size - offset))
    file.bytes.withUnsafeBytes { bytes in
      space.copyMemory(
        from: UnsafeRawBufferPointer(rebasing: bytes[min(offset, bytes.count)..<min(offset, bytes.count) + count]))
    }
    return count
  }

  func sync() throws(SystemError) {
    if simulated_disk_sync() != Int32(FAULTY_CALL_WORKS) {
      file.failSync()
      throw SystemError(code: EIO, operation: "sync")
    }
    if simulated_disk_ignores_syncs() == 0 { file.sync() }
  }
}
