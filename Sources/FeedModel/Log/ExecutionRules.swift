/// The rules by which stored requests are executed (Protocol/storage.md, "Versions").
///
/// - 1: the first.
/// - 2: `where` and `absent` of an element, and `result`, mean something. They were ignored before.
public enum ExecutionRules {
  /// Incremented when a change of the daemon makes a request that was accepted before lead to another state or revision.
  public static let current = 2
  /// The versions by which a log can be executed. A request that means something else now is refused.
  public static let known = 1...current
}
