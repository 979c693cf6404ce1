import FaultyDisk
import FeedSystem
import Glibc

/// A directory of the system whose calls fail when the faulty disk says so (FaultyDisk.h).
public final class FaultyDirectory: LogDirectory {
  private let base: SystemDirectory

  public init(_ path: String) {
    base = SystemDirectory(path)
  }

  public func names() throws(SystemError) -> [String] { try base.names() }
  public func open(_ name: String) throws(SystemError) -> any LogFile { FaultyFile(try base.open(name)) }
  public func rename(_ name: String, to other: String) throws(SystemError) { try base.rename(name, to: other) }
  public func remove(_ name: String) throws(SystemError) { try base.remove(name) }
  public var freeBytes: Int { base.freeBytes }

  public func sync() throws(SystemError) {
    if faulty_disk_sync_directory() != Int32(FAULTY_CALL_WORKS) {
      throw SystemError(code: EIO, operation: "sync directory")
    }
    try base.sync()
  }

  public func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    if faulty_disk_allocate() != Int32(FAULTY_CALL_WORKS) {
      throw SystemError(code: ENOSPC, operation: "allocate", path: name)
    }
    return FaultyFile(try base.create(name, size: size, isZeroed: false))
  }
}

private final class FaultyFile: LogFile {
  private let base: any LogFile

  init(_ base: any LogFile) {
    self.base = base
  }

  func size(named name: String) -> Int? { base.size(named: name) }
  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    try base.read(space, at: offset)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    switch faulty_disk_write() {
    case Int32(FAULTY_CALL_WORKS): return try base.write(first, second, at: offset)
    case Int32(FAULTY_CALL_FAILS):
      let half = UnsafeRawBufferPointer(rebasing: second[..<(second.count / 2)])
      _ = try base.write(first, half, at: offset)
      throw SystemError(code: EIO, operation: "write")
    default: throw SystemError(code: ENOSPC, operation: "write")
    }
  }

  func sync() throws(SystemError) {
    if faulty_disk_sync() != Int32(FAULTY_CALL_WORKS) { throw SystemError(code: EIO, operation: "sync") }
    try base.sync()
  }
}
