import FeedChange
import FeedSystem

/// Why a client could not do what it was asked.
public enum ClientError: Error, Equatable, Sendable {
  /// Nobody answers at the socket's path.
  case noDaemon(SystemError)
  /// The daemon closed the connection; its last word, if it had one.
  case closed(Bye?)
  /// The daemon refused a request.
  case refused(RemoteError)
  /// What came is not the protocol.
  case malformed(MalformedMessage)
  /// What came does not fit what came before: the copy of the feed is wrong.
  case fault(FeedFault)
  /// The time was up.
  case timedOut
  /// A system call failed.
  case system(SystemError)
}

extension ClientError {
  /// The description without a full stop, so that a sentence can go on behind it.
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
    case .timedOut: "the time was up"
    case .system(let error): "\(error)"
    }
  }
}

/// What a watcher found to be wrong in what it was sent: a bug in the daemon or in the watcher.
///
/// Whoever sees one has a copy that can no longer be trusted and starts over from a snapshot.
public enum FeedFault: Error, Equatable, Sendable {
  /// A delta starts at a revision that this copy does not have: something was lost or came twice.
  case gap(expected: UInt64, found: UInt64)
  /// A delta does not end after the revision it starts from.
  case backwards(from: UInt64, revision: UInt64)
  /// A delta came before the snapshot was complete.
  case deltaInsideSnapshot(revision: UInt64)
  /// A part of a snapshot came although none was under way.
  case unexpectedSnapshot(revision: UInt64)
  /// Two parts of one snapshot are of different revisions.
  case mixedSnapshot(expected: UInt64, found: UInt64)
  /// A part of a snapshot is not where the one before it ended, or its rows are more or fewer than the sections have.
  case misplacedSnapshot(at: IndexPath)
  /// The change does not fit the rows of this copy.
  case misfit(ChangeError, revision: UInt64)
  /// The message is about another feed or another epoch.
  case foreign(String)
  /// The digest of this copy is not the daemon's of the same revision.
  case digest(revision: UInt64, mine: String, daemons: String)
}

extension FeedFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .gap(let expected, let found):
      "a delta starts from revision \(found), but this copy is at revision \(expected)"
    case .backwards(let from, let revision):
      "a delta goes from revision \(from) back to \(revision)"
    case .deltaInsideSnapshot(let revision):
      "the delta of revision \(revision) came before the snapshot was complete"
    case .unexpectedSnapshot(let revision):
      "a snapshot of revision \(revision) came that nobody asked for"
    case .mixedSnapshot(let expected, let found):
      "a part of revision \(found) came inside a snapshot of revision \(expected)"
    case .misplacedSnapshot(let at):
      "the part of the snapshot at \(at) is not where the one before it ended, or has another number of rows"
    case .misfit(let error, let revision):
      "the delta of revision \(revision) does not fit this copy: \(error)"
    case .foreign(let name):
      "a message is about \"\(name)\", which is not what is watched"
    case .digest(let revision, let mine, let daemons):
      "at revision \(revision) the digest of this copy is \(mine) and the daemon's is \(daemons)"
    }
  }
}
