import Foundation

/// A directory of its own with a path short enough for a socket, removed with all that is in it.
public final class TemporaryDirectory: Sendable {
  public let path: String

  public init() throws {
    var template = Array("/tmp/feedd-XXXXXX".utf8CString)
    guard let made = template.withUnsafeMutableBufferPointer({ space in space.baseAddress.flatMap { mkdtemp($0) } })
    else {
      throw TestFailure("mkdtemp: errno \(errno)")
    }
    path = String(cString: made)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of something in it.
  public func file(_ name: String) -> String { "\(path)/\(name)" }
}
