/// The version of the programs of this package, as `--version`, `hello` and the log say it.
public enum ProgramVersion {
  public static let text = "0.1.0"
}
