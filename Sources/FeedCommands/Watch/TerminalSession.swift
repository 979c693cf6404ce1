import FeedClient
import FeedSystem
import Glibc

/// A terminal's screen, redrawn in place: only changed lines are written. Pure: returns the text to write.
struct Screen {
  /// Switches to the alternate screen, hides the cursor and disables wrapping.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  /// Returns to the shell's screen.
  static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private var shown: [String]?

  /// Redraws everything next time, because the size changed or another program used the screen.
  mutating func invalidate() { shown = nil }

  /// Returns the text that makes the terminal show `lines`; empty if it already does.
  mutating func draw(_ lines: [String]) -> String {
    var text = shown == nil ? "\u{1B}[2J" : ""
    let old = shown ?? []
    for row in 0..<max(lines.count, old.count) {
      let line = row < lines.count ? lines[row] : ""
      if row < old.count ? old[row] == line : line.isEmpty { continue }
      // A line that fills the row leaves the cursor on its last character, which would be erased behind it.
      text += "\u{1B}[\(row + 1);1H\u{1B}[K\(line)"
    }
    shown = lines
    return text
  }
}

enum Key: Equatable, Sendable {
  case character(Character)
  case up, down, left, right, pageUp, pageDown, home, end
  case enter, escape, backspace, tab, backTab

  /// Parses the keys in the input of a terminal. An incomplete escape sequence is the escape key.
  static func parse(_ bytes: some Collection<UInt8>) -> [Key] {
    let text = String(decoding: bytes, as: UTF8.self)
    var keys: [Key] = []
    var rest = text[...]
    while let character = rest.first {
      if character == "\u{1B}" {
        if let (sequence, key) = sequences.first(where: { rest.hasPrefix($0.0) }) {
          keys.append(key)
          rest = rest.dropFirst(sequence.count)
          continue
        }
        keys.append(.escape)
        // Skips an unknown sequence up to its letter.
        if rest.dropFirst().first == "[" {
          keys.removeLast()
          rest = rest.dropFirst(2).drop { !$0.isLetter && $0 != "~" }
        }
        rest = rest.dropFirst()
        continue
      }
      rest = rest.dropFirst()
      switch character {
      case "\r", "\n", "\r\n": keys.append(.enter)
      case "\u{7F}", "\u{8}": keys.append(.backspace)
      case "\t": keys.append(.tab)
      default: keys.append(.character(character))
      }
    }
    return keys
  }

  private static let sequences: [(String, Key)] = [
    ("\u{1B}[A", .up), ("\u{1B}[B", .down), ("\u{1B}[C", .right), ("\u{1B}[D", .left), ("\u{1B}OA", .up),
    ("\u{1B}OB", .down), ("\u{1B}OC", .right), ("\u{1B}OD", .left), ("\u{1B}[5~", .pageUp), ("\u{1B}[6~", .pageDown),
    ("\u{1B}[H", .home), ("\u{1B}[F", .end), ("\u{1B}OH", .home), ("\u{1B}OF", .end), ("\u{1B}[1~", .home),
    ("\u{1B}[4~", .end), ("\u{1B}[Z", .backTab),
  ]
}

/// An event of a terminal that a program controls.
enum TerminalEvent: Equatable {
  case key(Key)
  /// The size may have changed, or another program used the screen.
  case redraw
  /// A signal that ends the process.
  case end(Int32)
}

/// Controls the screen, the keyboard and the signals of a terminal, and restores them.
///
/// Invariant: while it is not entered, the terminal is in the state of the shell.
final class TerminalSession {
  private let console: Console
  private let environment: Environment
  private let signals: SignalQueue
  private var screen = Screen()
  private var isEntered = false
  /// The settings of the keyboard before this program changed them; nil if they are unchanged.
  private var settings: termios?
  private let hasKeys: Bool

  /// Takes control of the signals. ``draw(_:)`` takes control of the screen and the keyboard.
  init(_ console: Console, _ environment: Environment) throws(Failure) {
    (self.console, self.environment) = (console, environment)
    hasKeys = isatty(StandardStreams.input) == 1
    signals = try Failure.ofSystem(try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH]))
  }

  /// The descriptors to poll for reading.
  var descriptors: [Int32] { hasKeys ? [signals.descriptor, StandardStreams.input] : [signals.descriptor] }

  /// The current size of the screen.
  var size: (width: Int, height: Int) {
    let terminal = Terminal(descriptor: StandardStreams.output, environment: environment)
    return (terminal.columns, max(terminal.rows ?? 24, 2))
  }

  /// Draws lines on the screen.
  func draw(_ lines: [String]) throws(Failure) {
    if !isEntered { takeKeyboard() }
    console.printRaw((isEntered ? "" : Screen.enter) + screen.draw(lines))
    isEntered = true
    try console.flush()
  }

  /// Returns the events since the last call.
  func events() throws(Failure) -> [TerminalEvent] {
    var events: [TerminalEvent] = []
    while let arrival = try Failure.ofSystem(try signals.next()) {
      switch arrival.signal {
      case SIGWINCH:
        screen.invalidate()
        events.append(.redraw)
      case SIGTSTP:
        stop()
        events.append(.redraw)
      default: events.append(.end(arrival.signal))
      }
    }
    return events + readKeys().map { .key($0) }
  }

  private func readKeys() -> [Key] {
    guard hasKeys else { return [] }
    var list = WaitList()
    list.add(StandardStreams.input, .readable)
    guard (try? list.wait(until: 0)) == true else { return [] }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = bytes.withUnsafeMutableBytes { (try? StandardStreams.read(into: $0)) ?? 0 }
    return Key.parse(bytes[..<count])
  }

  /// Reads single keys without echo. Ctrl-C and Ctrl-Z still send signals.
  private func takeKeyboard() {
    guard hasKeys, settings == nil else { return }
    var now = termios()
    guard tcgetattr(StandardStreams.input, &now) == 0 else { return }
    settings = now
    now.c_lflag &= ~tcflag_t(ICANON | ECHO)
    tcsetattr(StandardStreams.input, TCSADRAIN, &now)
  }

  /// Restores the screen and the keyboard.
  func leave() {
    if var before = settings {
      tcsetattr(StandardStreams.input, TCSADRAIN, &before)
      settings = nil
    }
    guard isEntered else { return }
    isEntered = false
    screen.invalidate()
    console.printRaw(Screen.leave)
    try? console.flush()
  }

  /// Restores the shell's screen and stops the process. Returns when the shell continues it.
  private func stop() {
    leave()
    kill(getpid(), SIGSTOP)
  }
}
