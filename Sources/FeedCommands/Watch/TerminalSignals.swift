import FeedClient
import FeedSystem
import Glibc

/// What a person at a terminal may do to a program that owns the screen: end it, stop it, resize it. As events that are
/// polled, so that the screen is always given back as a shell wants it.
final class TerminalSignals {
  private let queue: SignalQueue
  private let display: LiveDisplay

  /// Takes over the signals of a terminal for `display`.
  init(_ display: LiveDisplay) throws(Failure) {
    self.display = display
    do throws(SystemError) {
      queue = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH])
    } catch {
      throw .system(error)
    }
  }

  /// To be polled for reading.
  var descriptor: Int32 { queue.descriptor }

  /// Does what the signals ask for.
  /// - Returns: whether the program shall end.
  func handle() throws(Failure) -> Bool {
    do throws(SystemError) {
      while let arrival = try queue.next() {
        switch arrival.signal {
        case SIGWINCH: display.refresh()
        case SIGTSTP: stop()
        default: return true
        }
      }
    } catch {
      throw .system(error)
    }
    return false
  }

  /// Stops as the terminal asked, with the shell's screen in sight; comes back when the shell says so.
  private func stop() {
    display.leave()
    kill(getpid(), SIGSTOP)
    display.refresh()
  }
}
