import FeedClient
import FeedStorage
import FeedSystem
import Glibc

let status = Program.run(Array(CommandLine.arguments.dropFirst()), environment: .current) { directory, file in
  do throws(StorageError) {
    try StateBackup.copy("\(directory)/\(StateFile.name)", to: file)
    return nil
  } catch {
    return "\(error.path): \(error.reason)"
  }
}
exit(status.rawValue)
