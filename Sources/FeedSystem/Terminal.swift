import CLinux
import Glibc

/// What a program may assume of the terminal, if there is one, behind one of its standard descriptors.
public struct Terminal: Equatable, Sendable {
  /// Whether the descriptor is a terminal at all.
  public var isTerminal: Bool
  /// Columns, from `$COLUMNS` or the terminal; ``defaultColumns`` when neither says.
  public var columns: Int
  /// Rows, from the terminal; nil when it does not say.
  public var rows: Int?
  /// Whether colours and other escape sequences are welcome: a terminal, no `NO_COLOR`, and not a `dumb` one.
  public var allowsColor: Bool
  /// Whether the cursor can be moved (a terminal that is not `dumb`); colour aside.
  public var canRedraw: Bool

  public static let defaultColumns = 80

  /// Looks at `descriptor` (1 is standard output) now; look again after SIGWINCH. Two system calls at most.
  public init(descriptor: Int32, environment: Environment) {
    isTerminal = isatty(descriptor) == 1
    var width: Int32 = 0
    var height: Int32 = 0
    let known = isTerminal && clinux_window_size(descriptor, &width, &height) == 0
    rows = known && height > 0 ? Int(height) : nil
    let measured = known && width > 0 ? Int(width) : Terminal.defaultColumns
    columns = environment.nonEmpty("COLUMNS").flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } ?? measured
    let isDumb = environment.nonEmpty("TERM") == nil || environment["TERM"] == "dumb"
    canRedraw = isTerminal && !isDumb
    allowsColor = canRedraw && environment.nonEmpty("NO_COLOR") == nil
  }
}
