import FeedChange
import FeedJSON
import FeedSystem

/// An error of a client.
public enum ClientError: Error, Equatable, Sendable {
  /// No daemon listens at the socket's path.
  case noDaemon(SystemError)
  /// The daemon closed the connection, with its reason if it sent one.
  case closed(Bye?)
  /// The daemon refused a request.
  case refused(RemoteError)
  /// The daemon sent a message that violates the protocol.
  case malformed(MalformedMessage)
  /// A message contradicts the earlier ones: the copy of the feed is wrong.
  case fault(FeedFault)
  /// The deadline passed.
  case timedOut
  /// A system call failed.
  case system(SystemError)
}

extension ClientError {
  /// The description without its full stop, to be used inside a sentence.
  package var clause: String {
    let text = description
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
}

extension ClientError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noDaemon(let error): "\(error)"
    case .closed(let bye?) where !bye.message.isEmpty: "the daemon closed the connection: \(bye.message)"
    case .closed: "the daemon closed the connection"
    case .refused(let error): "\(error.message) (\(error.code))"
    case .malformed(let error): "the daemon does not speak this protocol: \(error)"
    case .fault(let fault): "\(fault)"
    case .timedOut: "timed out"
    case .system(let error): "\(error)"
    }
  }
}

/// Returns what is read of a message.
package func reading<Value>(_ read: @autoclosure () throws(MalformedMessage) -> Value) throws(ClientError) -> Value {
  do throws(MalformedMessage) { return try read() } catch { throw .malformed(error) }
}

/// Applies a message to a copy, or checks that it continues the earlier ones.
@discardableResult
package func checking<Value>(_ check: @autoclosure () throws(FeedFault) -> Value) throws(ClientError) -> Value {
  do throws(FeedFault) { return try check() } catch { throw .fault(error) }
}

/// A contradiction in the messages to a watcher: a bug in the daemon or in the client.
///
/// The copy is invalid. Start over with a new watch.
public enum FeedFault: Error, Equatable, Sendable {
  /// A delta starts at another revision than that of this copy: a message was lost or duplicated.
  case gap(expected: UInt64, found: UInt64)
  /// A delta does not end at a later revision than it starts at.
  case backwards(from: UInt64, revision: UInt64)
  /// A delta arrived before the snapshot was complete.
  case deltaInsideSnapshot(revision: UInt64)
  /// A part of a snapshot arrived although none was expected.
  case unexpectedSnapshot(revision: UInt64)
  /// Two parts of one snapshot have different revisions.
  case mixedSnapshot(expected: UInt64, found: UInt64)
  /// A part of a snapshot does not continue the previous one, or the number of rows is wrong.
  case misplacedSnapshot(at: IndexPath)
  /// The change is invalid for the rows of this copy.
  case misfit(ChangeError, revision: UInt64)
  /// The message is about another feed or another epoch.
  case foreign(String)
  /// The digest of this copy differs from the daemon's at the same revision.
  case digest(revision: UInt64, mine: String, daemons: String)
}

extension FeedFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .gap(let expected, let found):
      "a delta starts from revision \(grouped(found)), but this copy is at revision \(grouped(expected))"
    case .backwards(let from, let revision): "a delta goes from revision \(grouped(from)) back to \(grouped(revision))"
    case .deltaInsideSnapshot(let revision):
      "the delta of revision \(grouped(revision)) came before the snapshot was complete"
    case .unexpectedSnapshot(let revision): "a snapshot of revision \(grouped(revision)) was not requested"
    case .mixedSnapshot(let expected, let found):
      "a part of revision \(grouped(found)) came inside a snapshot of revision \(grouped(expected))"
    case .misplacedSnapshot(let at):
      "the part of the snapshot at \(at) is not where the one before it ended, or has another number of rows"
    case .misfit(let error, let revision): "the delta of revision \(grouped(revision)) does not fit this copy: \(error)"
    case .foreign(let name): "a message is about \"\(name)\", which is not what is watched"
    case .digest(let revision, let mine, let daemons):
      "at revision \(grouped(revision)) the digest of this copy is \(mine) and the daemon's is \(daemons)"
    }
  }
}
