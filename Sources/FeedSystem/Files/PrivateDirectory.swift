import Glibc

/// A directory that only its user may enter.
public enum PrivateDirectory {
  /// Makes the directory, and those above it, where they are missing. What is there keeps its mode.
  public static func make(_ path: String) throws(SystemError) {
    var status = stat()
    if stat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFDIR { return }
      throw SystemError(code: ENOTDIR, operation: "keep files in", path: path)
    }
    if let slash = path.lastIndex(of: "/"), slash != path.startIndex { try make(String(path[..<slash])) }
    if mkdir(path, 0o700) == 0 { return }
    let error = SystemError.last("make the directory", path)
    if error.code != EEXIST { throw error }
  }

  /// Does something whose new files only this user may read or write. Not to be called while another thread makes files.
  public static func withPrivateFiles<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let mask = umask(0o077)
    defer { umask(mask) }
    return try body()
  }
}
