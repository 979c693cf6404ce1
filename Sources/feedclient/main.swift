import FeedCommands
import FeedStorage
import FeedSystem
import Glibc

/// Runs an action whose files are, like the state, for nobody else to read. Returns what failed, or nil.
@Sendable func privately(_ action: () throws(StorageError) -> Void) -> String? {
  do throws(StorageError) {
    try PrivateDirectory.withPrivateFiles(action)
    return nil
  } catch {
    return error.description
  }
}

let states = StateActions(
  copy: { directory, file in
    privately { () throws(StorageError) in try StateBackup.copy("\(directory)/\(StateFile.name)", to: file) }
  },
  restore: { file, directory, replaces in
    privately { () throws(StorageError) in try StateBackup.restore(file, to: directory, replacing: replaces) }
  })
exit(Program.run(ProcessIdentity.arguments, environment: .current, states: states).rawValue)
