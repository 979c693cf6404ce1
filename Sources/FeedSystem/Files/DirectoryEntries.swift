import Glibc

/// The entries of directories that lead from the root to a file, through symbolic links.
///
/// The file that a path names changes exactly when one of these entries does: when a directory on the way is renamed, a
/// link gets another target, or the file itself is replaced. A mount changes it too, without any entry.
///
///     // /srv/live -> /srv/r2: visits (/, srv), (/srv, live), (/, srv), (/srv, r2), (/srv/r2, db)
///     DirectoryEntries.walk("/srv/live/db") { directory, name, isLast in … }
public enum DirectoryEntries {
  /// The maximum number of symbolic links on the way, as in Linux.
  private static let maxLinks = 40

  /// Calls `visit` for each entry before it is examined, so that what changes afterwards can be noticed. Stops at an entry
  /// that does not exist or cannot be examined.
  /// - Parameters:
  ///   - path: an absolute path.
  ///   - visit: gets a directory without symbolic links, the name of the entry, and whether the path ends with it.
  public static func walk(
    _ path: String, _ visit: (_ directory: String, _ name: String, _ isLast: Bool) -> Void
  ) {
    assert(path.hasPrefix("/"), "a relative path has no root")
    var directory = "/"
    // The next name is the last one.
    var names = Array(path.split(separator: "/").reversed())
    var links = 0
    while let name = names.popLast() {
      if name == "." { continue }
      if name == ".." {
        directory = FilePath.directory(of: directory)
        continue
      }
      visit(directory, String(name), names.isEmpty)
      let entry = directory == "/" ? "/\(name)" : "\(directory)/\(name)"
      guard let identity = FileIdentity(at: entry) else { return }
      if identity.isSymbolicLink {
        links += 1
        guard links <= maxLinks, let target = FilePath.target(ofLink: entry) else { return }
        if target.hasPrefix("/") { directory = "/" }
        names += target.split(separator: "/").reversed()
      } else {
        directory = entry
      }
    }
  }
}
