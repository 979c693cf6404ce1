import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let delete = Command(
    name: "delete", usage: ["FEED ID... [--where FILTER]", "FEED --where FILTER"],
    summary: "delete elements by identity or by a filter",
    examples: """
      feedclient delete inbox 17 18 lamp
      feedclient delete inbox --where '@.read == true && @.priority < 3'
      feedclient delete todo b --where '@.owner == "me"'
      """,
    about: """
      Deletes elements of a collection, or of an array with identity, in one commit: those with these identities, or all \
      that a filter accepts. An identity that is not there is reported and the others are deleted. With identities and \
      --where, nothing is deleted unless each element is there and matches.
      """,
    options: [
      OptionDescription(
        "where", value: .text("FILTER"),
        help: "delete the elements that this filter accepts; with ID, delete only if each of them matches"),
      OptionDescription("strict", help: "exit with 1 if an identity is not there"),
    ] + changing,
    notes: idNote, operands: 1...Int.max
  ) { invocation throws(Failure) in
    let ids = invocation.operands.dropFirst().map(Operands.id)
    if ids.isEmpty {
      guard invocation.options.contains("where") else {
        throw invocation.usage("missing argument ID or --where FILTER")
      }
      if invocation.options.contains("strict") { throw invocation.usage("--strict needs ID") }
      return try invocation.change("delete", invocation.changeParameters())
    }
    return try Deletion(invocation, ids).run()
  }
}

/// A deletion by identity that finds out which identities are not there.
///
/// The daemon ignores unknown identities. With a filter that every element matches, it deletes nothing and names the first
/// one instead. The request is then repeated without it.
private struct Deletion {
  /// The maximum number of identities that are reported. The rest is deleted without a condition.
  private static let maxMissing = 100
  /// A filter that every element matches.
  private static let everything = "@"

  private let invocation: Invocation
  private var ids: [String]
  private var missing = 0

  init(_ invocation: Invocation, _ ids: [String]) {
    self.invocation = invocation
    self.ids = ids
  }

  consuming func run() throws(Failure) -> ExitStatus {
    let deadline = invocation.deadline()
    let (connection, _) = try invocation.connect(deadline: deadline)
    let hasFilter = invocation.options.contains("where")
    var isConditional = !hasFilter
    while true {
      var params = try invocation.changeParameters()
      params.add("ids", json: ids)
      if isConditional { params.add("where", Self.everything) }
      do throws(Failure) {
        let console = invocation.console
        try invocation.call(connection, "delete", params.finish(), deadline: deadline) { Show.mutation($0, console) }
        break
      } catch {
        guard isConditional, case .client(.refused(let refusal)) = error else { throw error }
        if let index = refusal.conditionIndex, ids.indices.contains(index) {
          try report(ids.remove(at: index))
          isConditional = !ids.isEmpty && missing < Self.maxMissing
        } else if refusal.code == RemoteError.notAllowed || refusal.code == RemoteError.invalidParameters {
          // A condition needs the right to read the feed, and a daemon that knows conditions on elements.
          isConditional = false
        } else {
          throw error
        }
      }
    }
    return missing > 0 && invocation.options.contains("strict") ? .refused : .done
  }

  private mutating func report(_ id: String) throws(Failure) {
    missing += 1
    let console = invocation.console
    let tell = invocation.options.contains("strict") ? console.say : console.note
    tell("'\(invocation.operand(0))' has no element \(id)")
    if missing == Self.maxMissing { tell("further elements that are not there are not named") }
  }
}

extension RemoteError {
  fileprivate static let notAllowed = -32006
  fileprivate static let invalidParameters = -32602

  /// The index of the first element in the request that does not meet the condition on elements.
  var conditionIndex: Int? {
    code == Self.conditionFailed ? data?.readJSON { $0.member("index")?.int } : nil
  }
}
