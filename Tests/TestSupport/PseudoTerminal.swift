import FeedSystem
import Glibc

/// A pseudo-terminal: bytes written to `terminal` are read from `master`, and the reverse.
public final class PseudoTerminal {
  private let masterEnd: Descriptor
  private let terminalEnd: Descriptor

  public var master: Int32 { masterEnd.rawValue }
  public var terminal: Int32 { terminalEnd.rawValue }

  public init(columns: UInt16, rows: UInt16) throws {
    // TIOCSPTLCK and TIOCGPTPEER, whose macros Swift does not import.
    let (unlock, openPeer): (UInt, UInt) = (0x4004_5431, 0x5441)
    masterEnd = Descriptor(owning: open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC))
    var locked: Int32 = 0
    guard ioctl(masterEnd.rawValue, unlock, &locked) == 0 else { throw TestFailure("no terminal: errno \(errno)") }
    let peer = ioctl(masterEnd.rawValue, openPeer, O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard peer >= 0 else { throw TestFailure("no terminal: errno \(errno)") }
    terminalEnd = Descriptor(owning: peer)
    try resize(columns: columns, rows: rows)
  }

  /// Changes the size of the terminal.
  public func resize(columns: UInt16, rows: UInt16) throws {
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    guard ioctl(terminal, UInt(TIOCSWINSZ), &size) == 0 else { throw TestFailure("no size: errno \(errno)") }
  }
}
