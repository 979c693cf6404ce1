import CLinux
import Glibc

/// Reports changes in directories (inotify) through a descriptor.
public final class FileEvents {
  public struct Event: Sendable {
    /// The number of the directory, from ``watch(directory:)``.
    public let directory: Int32
    /// The name of the file in the directory; empty for the directory itself.
    public let name: String
    /// Whether the directory was removed or is no longer watched. Its number is then invalid.
    public let isEnd: Bool
    /// Whether events were lost. Any watched file may have changed.
    public let isOverflow: Bool
  }

  private let handle: Descriptor
  private let space: UnsafeMutableRawBufferPointer

  public init() throws(FileEventsError) {
    let number = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard number >= 0 else {
      let code = currentErrno()
      let advice = code == EMFILE ? "raise fs.inotify.max_user_instances, or the limit of open files" : nil
      throw .system(SystemError(code: code, operation: "create a queue of file events", advice: advice))
    }
    handle = Descriptor(owning: number)
    space = .allocate(byteCount: 16 << 10, alignment: 8)
  }

  deinit { space.deallocate() }

  /// The descriptor to poll for reading.
  public var descriptor: Int32 { handle.rawValue }

  public enum Interest: Sendable {
    /// Which files the names in the directory stand for: creation, renaming, deletion and changed permissions.
    case names
    /// The names, and writes to the files.
    case contents
  }

  /// Starts to report changes of a directory. Watching a directory again returns the same number, and adds to what is
  /// reported.
  /// - Returns: the number of the directory; nil if it does not exist.
  /// - Throws: if the directory is not readable, or if the system watches as many directories as it may.
  public func watch(directory: String, for interest: Interest) throws(FileEventsError) -> Int32? {
    var changes = IN_CREATE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
    if interest == .contents { changes |= IN_MODIFY | IN_CLOSE_WRITE }
    let flags = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) | UInt32(IN_MASK_ADD)
    let number = inotify_add_watch(handle.rawValue, directory, UInt32(changes) | flags)
    if number >= 0 { return number }
    let error = SystemError.last("watch", directory)
    if error.isMissing { return nil }
    // The system's text for this, "no space left on device", is about files.
    guard error.code == ENOSPC else { throw .system(error) }
    throw .exhausted(directory: directory)
  }

  /// Stops watching a directory. A directory that was removed is not an error.
  public func unwatch(_ directory: Int32) { _ = inotify_rm_watch(handle.rawValue, directory) }

  /// Calls `body` with the next events, in order: as many as one read returns, so that the caller is not held while others keep
  /// writing. ``descriptor`` stays readable if there are more. Never blocks.
  public func forEach(_ body: (Event) -> Void) {
    let count = retryingInterrupts { Glibc.read(handle.rawValue, space.baseAddress, space.count) }
    var offset = 0
    let header = MemoryLayout<inotify_event>.size
    while offset + header <= count {
      let event = space.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
      let length = min(Int(event.len), count - offset - header)
      let name = UnsafeRawBufferPointer(rebasing: space[(offset + header)..<(offset + header + length)])
      body(
        Event(
          directory: event.wd, name: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self),
          isEnd: event.mask & UInt32(IN_IGNORED) != 0, isOverflow: event.mask & UInt32(IN_Q_OVERFLOW) != 0))
      offset += header + length
    }
  }
}

/// The reason why changes of files cannot be reported.
public enum FileEventsError: Error, Equatable, Sendable, CustomStringConvertible {
  case system(SystemError)
  /// The processes of this user watch as many directories as they may.
  case exhausted(directory: String)

  public var description: String {
    switch self {
    case .system(let error): error.description
    case .exhausted(let directory):
      "cannot watch \(directory): no inotify watches are left; raise fs.inotify.max_user_watches"
    }
  }
}
