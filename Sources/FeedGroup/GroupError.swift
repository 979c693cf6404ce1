import FeedSystem

/// An error of a group: what failed, and what the operator can do.
public enum GroupError: Error, Equatable, Sendable, CustomStringConvertible {
  /// libnats cannot be used.
  case noLibrary(String)
  /// A server refused the connection, or the settings are wrong.
  case refused(servers: String, reason: String)
  /// No server answered, and there is no copy of the state on this host.
  case unreachable(servers: String, reason: String)
  /// JetStream refused a request.
  case jetStream(what: String, reason: String, remedy: String? = nil)
  /// The stream has the name of the group's, but belongs to something else.
  case foreignStream(String, reason: String)
  /// The stream was written by another version of the format.
  case otherVersion(stream: String, found: String)
  /// The limits that decide over requests differ from those of the group.
  case otherLimits(group: String, differences: [String])
  /// Messages that are needed are missing in the stream.
  case gap(stream: String, from: UInt64, to: UInt64)
  /// An image does not verify.
  case badImage(String, reason: String)
  /// JetStream does not answer: the servers have no leader, or JetStream is not enabled.
  case silent(String)
  /// A name cannot be used.
  case badName(String)
  /// A system call failed.
  case system(String)
  /// The configuration cannot be used in a group.
  case configuration(String)

  /// Whether the servers do not answer, so that a member with an image begins cut off.
  var isAbsence: Bool {
    switch self {
    case .unreachable, .silent: true
    default: false
    }
  }

  /// The reason of a failed connection, without the remedy.
  var cause: String {
    switch self {
    case .noLibrary(let reason), .refused(_, let reason), .unreachable(_, let reason): reason
    default: description
    }
  }

  public var description: String {
    switch self {
    case .noLibrary(let reason): "cannot join a group: \(reason); install it with: apt-get install libnats3.4"
    case .refused(let servers, let reason):
      "cannot connect to \(servers): \(reason); check the URL of --log and the credentials in the configuration"
    case .unreachable(let servers, let reason):
      "cannot reach \(servers): \(reason), and this host has no copy of the group's state; start nats-server or correct "
        + "--log"
    case .jetStream(let what, let reason, let remedy): "\(what): \(reason); \(remedy ?? JetStream.Failure.access)"
    case .silent(let reason):
      "JetStream does not answer: \(reason); check that it is enabled (nats-server --jetstream), that the user may use it, and that a "
        + "majority of the servers runs"
    case .foreignStream(let name, let reason):
      "stream \(name) does not belong to this group: \(reason); choose another name with --group, or delete the stream"
    case .otherVersion(let stream, let found):
      "stream \(stream) was written by another version (\(found)); run the same version of feedd on all hosts"
    case .otherLimits(let group, let differences):
      "the limits of group \(group) are others: \(differences.joined(separator: ", ")); start feedd with the limits of the "
        + "group"
    case .gap(let stream, let first, let last):
      "messages \(first) to \(last) of stream \(stream) are missing and no image covers them; publish one with 'feedclient group "
        + "image' on a member that has the state, or remove the stream and begin anew"
    case .badImage(let name, let reason):
      "image \(name) does not verify: \(reason); publish another one with: feedclient group image"
    case .badName(let name): "group name '\(name)': expected 1 to 32 letters, digits, '-' or '_'"
    case .system(let reason): reason
    case .configuration(let reason): reason
    }
  }
}
