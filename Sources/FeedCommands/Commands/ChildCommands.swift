import FeedClient
import FeedSystem

/// Commands for the children of composed and segmented feeds.
extension Command {
  static let activate = Command(
    name: "activate", usage: ["FEED CHILD|none"], summary: "choose the active child of a segmented feed",
    examples: """
      feedclient activate tabs 1
      feedclient activate tabs inbox/urgent
      feedclient activate tabs none
      """,
    about: """
      Makes a child of a segmented feed the active one, whose rows the feed shows: by index from 0, by name, or none. \
      An index past the end is the last child.
      """,
    options: changing,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let child = invocation.operand(1)
    params.add("child", json: child == "none" ? "-1" : Operands.child(child))
    return try invocation.change("activate", params)
  }

  static let insertChild = Command(
    name: "insertChild", usage: ["FEED CHILD [--at N|--before NAME|--after NAME]"],
    summary: "add a child to a composed or segmented feed",
    examples: "feedclient insertChild home inbox/urgent --before styles",
    about: "Adds a feed or a bin as a child of a composed or segmented feed: at the end unless a place is given.",
    options: [
      OptionDescription("at", value: .integer(0...Int.max), help: "index of the new child, from 0"),
      OptionDescription("before", value: .text("NAME"), help: "insert before this child"),
      OptionDescription("after", value: .text("NAME"), help: "insert after this child"),
      animation, condition,
    ],
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    params.add("child", invocation.operand(1))
    let places = ["at", "before", "after"].filter(invocation.options.contains)
    if places.count > 1 { throw invocation.usage("--\(places[0]) and --\(places[1]) exclude each other") }
    if let index = invocation.options.integer("at") { params.add("at", index) }
    for place in ["before", "after"] {
      if let name = invocation.options.text(place) { params.add(place, name) }
    }
    return try invocation.change("insertChild", params)
  }

  static let removeChild = Command(
    name: "removeChild", usage: ["FEED CHILD"], summary: "remove a child of a composed or segmented feed",
    examples: "feedclient removeChild home styles",
    about: "Removes a child of a composed or segmented feed, by index from 0 or by name. The child itself stays.",
    options: changing,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let child = invocation.operand(1)
    params.add(Int(child) == nil ? "child" : "at", json: Operands.child(child))
    return try invocation.change("removeChild", params)
  }
}
