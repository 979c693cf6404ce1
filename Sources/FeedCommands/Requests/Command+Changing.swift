import FeedClient
import FeedSystem

extension Command {
  static let delete = Command(
    name: "delete", usage: ["FEED ID..."], summary: "take elements out, by identity",
    about: "Takes the elements with these identities out of a collection, in one commit. An unknown one is no error.",
    notes: idNote + """
      \n
      Example:
        feedclient delete inbox 17 18 lamp
      """,
    operands: 2...Int.max
  ) { invocation throws(Failure) in
    var params = Parameters()
    params.add("feed", invocation.operand(0))
    params.add("ids", json: invocation.operands.dropFirst().map(Operands.id))
    return try invocation.request("delete", params.finish(), show: Show.mutation)
  }

  static let set = Command(
    name: "set", usage: ["FEED [ELEMENT...|-]"], summary: "make a feed hold exactly these elements",
    about: """
      Makes a feed hold exactly the elements given, as arguments or one a line on standard input, in one commit. \
      What is there already and equal stays as it is. Standard input without elements empties the feed only if '-' \
      asks for it.
      """,
    notes: """
      Examples:
        jq -c '.[]' todo.json | feedclient set todo
        feedclient set todo - </dev/null     empties it
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = Parameters()
    params.add("feed", invocation.operand(0))
    let elements = try invocation.elements(from: 1)
    if elements.isEmpty, invocation.operands.count == 1 {
      throw invocation.usage("there are no elements on standard input; to empty the feed, give '-' for them")
    }
    params.add("elements", json: elements)
    return try invocation.request("set", params.finish(), show: Show.mutation)
  }
}
