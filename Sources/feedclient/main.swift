import FeedCommands
import FeedStorage
import FeedSystem
import Glibc

/// Runs an action whose files only this user may read, like those of the state. Returns what failed, or nil.
///
/// A signal cancels the action, which removes its files, and then ends the process.
@Sendable func privately(_ action: (_ isCancelled: @escaping () -> Bool) throws(StorageError) -> Void) -> String? {
  let signals = DelayedSignals()
  defer { signals.deliver() }
  do throws(StorageError) {
    try PrivateDirectory.withPrivateFiles { () throws(StorageError) in try action { signals.arePending } }
    return nil
  } catch {
    return error.description
  }
}

let states = StateActions(
  copy: { directory, file in
    privately { isCancelled throws(StorageError) in
      try StateBackup.copy(directory, to: file, isCancelled: isCancelled)
    }
  },
  restore: { file, directory, replaces in
    privately { isCancelled throws(StorageError) in
      try StateBackup.restore(file, to: directory, replacing: replaces, isCancelled: isCancelled)
    }
  })
exit(
  Program.run(ProcessIdentity.arguments, environment: ProcessIdentity.environment, states: states).rawValue)
