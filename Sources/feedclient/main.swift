import FeedCommands
import FeedStorage
import FeedSystem
import Glibc

let status = Program.run(Array(CommandLine.arguments.dropFirst()), environment: .current) { directory, file in
  do throws(StorageError) {
    let database = "\(directory)/\(StateFile.name)"
    // Like what it copies, for nobody else to read.
    try PrivateDirectory.withPrivateFiles { () throws(StorageError) in try StateBackup.copy(database, to: file) }
    return nil
  } catch {
    return error.description
  }
}
exit(status.rawValue)
