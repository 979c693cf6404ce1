import CLinux
import Glibc

/// Reports changes in directories (inotify) through a descriptor.
public struct FileEvents: ~Copyable {
  /// A change in a watched directory.
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

  public init() throws(SystemError) {
    let number = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard number >= 0 else { throw .last("create a queue of file events") }
    handle = Descriptor(owning: number)
    space = .allocate(byteCount: 16 << 10, alignment: 8)
  }

  deinit { space.deallocate() }

  /// The descriptor to poll for reading.
  public var descriptor: Int32 { handle.rawValue }

  /// Starts to report changes of the directory and of the files in it: creation, writing, closing, renaming, deletion and
  /// changed permissions. Watching a directory again returns the same number.
  /// - Returns: the number of the directory; nil if it does not exist or is not readable.
  public func watch(directory: String) -> Int32? {
    let changes = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
    let ends = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    let number = inotify_add_watch(handle.rawValue, directory, UInt32(changes) | UInt32(ends))
    return number >= 0 ? number : nil
  }

  /// Stops watching a directory. A directory that was removed is not an error.
  public func unwatch(_ directory: Int32) {
    _ = inotify_rm_watch(handle.rawValue, directory)
  }

  /// Calls `body` with the events since the last call, in order. Never blocks.
  public func forEach(_ body: (Event) -> Void) {
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
