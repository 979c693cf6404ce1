import Glibc

/// Whether what is written on standard error goes straight to the journal, which takes a priority before each line.
public enum JournalStream {
  /// Compares `$JOURNAL_STREAM` (device and inode, set by the service manager) with the descriptor: a program whose standard
  /// error was redirected elsewhere keeps the variable but does not write to the journal.
  public static func isConnected(to descriptor: Int32, _ environment: Environment) -> Bool {
    guard let text = environment.nonEmpty("JOURNAL_STREAM"), let file = FileIdentity(of: descriptor) else {
      return false
    }
    return text == "\(file.device):\(file.inode)"
  }
}
