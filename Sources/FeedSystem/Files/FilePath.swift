import Glibc

/// Parts of paths, and paths without detours.
public enum FilePath {
  /// The directory that holds `path`: `/` for what stands there, `.` for a bare name.
  public static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    let directory = path[..<slash]
    return directory.isEmpty ? "/" : String(directory)
  }

  /// The last part.
  public static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// The path from the root; a relative one starts from the working directory. Symbolic links stay.
  public static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    let start = String(cString: directory)
    return start.hasSuffix("/") ? start + path : "\(start)/\(path)"
  }

  /// The path without symbolic links; nil when there is no such file.
  public static func resolved(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
