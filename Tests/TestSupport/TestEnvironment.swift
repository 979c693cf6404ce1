import FeedSystem
import Foundation

/// An unexpected failure of the helpers of a test.
public struct TestFailure: Error, CustomStringConvertible {
  public var description: String

  public init(_ description: String) { self.description = description }
}

/// How much work the randomized tests do.
///
/// `scripts/test --long` sets `FEEDD_LONG=1`. A long version repeats the same checks more often; it never checks less.
public enum TestEffort {
  /// Whether the long versions run.
  public static let isLong = Environment.current["FEEDD_LONG"] == "1"

  /// The seed of `FEEDD_SEED`: the simulation runs this seed alone, to replay a failure.
  public static let seed = Environment.current["FEEDD_SEED"].flatMap { UInt64($0) }

  /// Returns the number of repetitions.
  /// - Parameters:
  ///   - standard: the number without `--long`.
  ///   - long: the number with `--long`.
  ///   - variable: an environment variable that overrides both, to replay or extend one test.
  public static func count(_ standard: Int, long: Int, variable: String? = nil) -> Int {
    if let variable, let count = Environment.current[variable].flatMap({ Int($0) }) { return count }
    return isLong ? long : standard
  }
}

/// The programs that were built with the running tests.
public enum BuildProducts {
  /// Returns the path of the program `name`, in the directory of the test bundle.
  public static func program(_ name: String) throws -> String {
    let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = "\((runner as NSString).deletingLastPathComponent)/\(name)"
    guard FileManager.default.isExecutableFile(atPath: path) else { throw TestFailure("cannot find program \(path)") }
    return path
  }

  /// The folder of the package, derived from the path of this source file.
  public static var packageFolder: String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .path
  }
}

/// A temporary directory with a path short enough for a socket. It is removed with its contents when it is deallocated.
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

  /// Returns the path of a file in the directory.
  public func file(_ name: String) -> String { "\(path)/\(name)" }
}
