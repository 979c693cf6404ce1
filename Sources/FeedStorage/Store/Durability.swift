/// What a commit survives once it was stored.
public enum Durability: Sendable {
  /// The end of the process, however it comes: the system has the bytes.
  case process
  /// The end of the machine: the disk has them.
  case disk
}
