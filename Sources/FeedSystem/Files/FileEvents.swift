import CLinux
import Glibc

/// What happens in directories (inotify), as something to read from a descriptor.
public struct FileEvents: ~Copyable {
  /// One thing that happened.
  public struct Event: Sendable {
    /// The directory's number, as ``watch(directory:)`` gave it.
    public let directory: Int32
    /// The file in it; empty when it was the directory itself.
    public let name: String
    /// The directory is gone, and so is its number.
    public let isEnd: Bool
    /// Events were lost: anything may have happened anywhere.
    public let isOverflow: Bool
  }

  private let handle: Descriptor
  private let space: UnsafeMutableRawBufferPointer

  public init() throws(SystemError) {
    let number = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard number >= 0 else { throw .last("watch files") }
    handle = Descriptor(owning: number)
    space = .allocate(byteCount: 16 << 10, alignment: 8)
  }

  deinit { space.deallocate() }

  /// To be waited on for reading.
  public var descriptor: Int32 { handle.rawValue }

  /// Begins to report what happens to the files of a directory, and to itself: made, written, closed, renamed, deleted, other
  /// permissions. A directory has one number however often it is asked for.
  /// - Returns: the number; nil when there is no such directory or it may not be read.
  public func watch(directory: String) -> Int32? {
    let changes = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
    let ends = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    let number = inotify_add_watch(handle.rawValue, directory, UInt32(changes) | UInt32(ends))
    return number >= 0 ? number : nil
  }

  /// Stops reporting on a directory; one that is gone is not an error.
  public func unwatch(_ directory: Int32) {
    _ = inotify_rm_watch(handle.rawValue, directory)
  }

  /// Hands out what happened since the last call, in order.
  public func take(_ body: (Event) -> Void) {
    while true {
      let count = retryingInterrupts { Glibc.read(handle.rawValue, space.baseAddress, space.count) }
      guard count > 0 else { return }
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
}
