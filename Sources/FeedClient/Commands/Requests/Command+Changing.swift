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
      What is there already and equal stays as it is.
      """,
    notes: """
      Example:
        jq -c '.[]' todo.json | feedclient set todo
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = Parameters()
    params.add("feed", invocation.operand(0))
    params.add("elements", json: try invocation.elements(from: 1))
    return try invocation.request("set", params.finish(), show: Show.mutation)
  }
}
