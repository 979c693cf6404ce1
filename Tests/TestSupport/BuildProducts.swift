import Foundation

/// The programs that were built together with the running tests.
public enum BuildProducts {
  /// The path of the program `name`, which lies beside the test bundle.
  public static func program(_ name: String) throws -> String {
    let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = "\((runner as NSString).deletingLastPathComponent)/\(name)"
    guard FileManager.default.isExecutableFile(atPath: path) else { throw TestFailure("there is no program \(path)") }
    return path
  }

  /// The folder of the package, found from where this file was compiled.
  public static var packageFolder: String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .path
  }
}
