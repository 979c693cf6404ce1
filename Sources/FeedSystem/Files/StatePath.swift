/// Where the daemon keeps its state when nobody says otherwise.
public enum StatePath {
  /// The directory without `--state`: `$STATE_DIRECTORY` as systemd sets it (the first of several), for root
  /// `/var/lib/feedd`, else `$XDG_STATE_HOME/feedd` or `$HOME/.local/state/feedd`. nil when none of them can be told.
  public static func standard(_ environment: Environment, uid: UInt32 = ProcessIdentity.uid) -> String? {
    if let first = environment.nonEmpty("STATE_DIRECTORY")?.split(separator: ":").first { return String(first) }
    if uid == 0 { return "/var/lib/feedd" }
    if let state = environment.nonEmpty("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/feedd" }
    return environment.nonEmpty("HOME").map { "\($0)/.local/state/feedd" }
  }
}
