import FeedSystem
import Glibc

/// Reads the files of a state directory while a daemon may write and replace them.
enum LiveState {
  /// The most attempts: each may meet another change.
  private static let attempts = 20
  /// Microseconds between two attempts.
  private static let pause: UInt32 = 2000

  /// Calls `body`, and again if it failed because a daemon changed the files meanwhile: a batch may be half written, and a segment
  /// removed, at the moment at which they are read.
  /// - Parameter isCancelled: called after each failure; if it returns true, there is no other attempt.
  static func read<Result>(
    _ directory: String, unless isCancelled: () -> Bool = { false }, _ body: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    var attempt = 0
    while true {
      attempt += 1
      let before = Stamp(directory)
      do throws(StorageError) {
        return try body()
      } catch {
        // The clock of the file system may be too coarse for the stamps of the first attempt.
        guard attempt < attempts, isPassing(error), attempt == 1 || before != Stamp(directory), !isCancelled() else {
          throw error
        }
        usleep(pause)
      }
    }
  }

  /// Whether a change of the files may be the cause of an error. Images and databases of older schemas are never written in place.
  private static func isPassing(_ error: StorageError) -> Bool {
    switch error.kind {
    case .corrupt, .foreign, .newerVersion, .otherRules, .forbidden: false
    default: true
    }
  }

  /// The stamps of the files. Equal stamps before and after show that nothing was written meanwhile.
  struct Stamp: Equatable {
    private let files: [String: FileStamp]

    init(_ directory: String) {
      var files: [String: FileStamp] = [:]
      for name in (try? SystemDirectory(directory).names()) ?? []
      where name.hasPrefix("log-") || name.hasPrefix(StateFile.name) {
        files[name] = FileStamp(at: "\(directory)/\(name)")
      }
      self.files = files
    }
  }
}
