import Glibc

/// How large a file is.
public enum FileSize {
  /// Bytes of the file at `path`; nil when there is none or it cannot be looked at.
  public static func of(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }
}
