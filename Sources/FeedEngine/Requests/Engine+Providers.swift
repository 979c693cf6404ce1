import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The methods on composed and segmented feeds (seed 002).
extension Engine {
  func restructure(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    guard let provider = feed.kind as? ProviderKind else {
      throw .wrongKind(
        feed: feed.name, kind: feed.kindName, wanted: method == .activate ? "segmented" : "composed or segmented")
    }
    switch method {
    case .insertChild:
      let child = try parameters.string("child", "the name of a feed or bin")
      try provider.insertChild(child, at: try place(parameters), in: catalog)
    case .removeChild:
      try provider.removeChild(at: try child(parameters, of: provider), in: catalog)
    default:
      guard provider.isSegmented else {
        throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "segmented")
      }
      try activate(provider, parameters)
    }
  }

  private func activate(_ feed: ProviderKind, _ parameters: Parameters) throws(FeedError) {
    let child = try parameters.required("child", "the index or the name of a child, or -1 for none")
    if let name = child.string { return try feed.activate(index: feed.child(named: name, in: catalog), in: catalog) }
    guard let index = child.int else {
      throw Parameters.refuse("child", "must be the index or the name of a child, or -1 for none")
    }
    try feed.activate(index: index, in: catalog)
  }

  private func place(_ parameters: Parameters) throws(FeedError) -> ChildPlace {
    let given = ["at", "before", "after"].filter { parameters.object?.member(utf8: $0) != nil }
    if given.count > 1 {
      throw .invalidParams(member: given[1], reason: "must not stand beside \(given[0]); give one of them")
    }
    if parameters.member("before") != nil { return .before(try parameters.string("before", "the name of a child")) }
    if parameters.member("after") != nil { return .after(try parameters.string("after", "the name of a child")) }
    if let at = parameters.member("at") {
      guard let index = at.int else {
        throw Parameters.refuse("at", "must be a whole number: an index among the children")
      }
      return .index(index)
    }
    return .end
  }

  private func child(_ parameters: Parameters, of feed: ProviderKind) throws(FeedError) -> Int {
    try parameters.refuseBoth("child", "at")
    if parameters.member("child") != nil {
      return try feed.child(named: try parameters.string("child", "the name of a child"), in: catalog)
    }
    guard parameters.member("at") != nil else {
      throw Parameters.refuse("child", "is missing: give the name of a child, or \"at\" as its index")
    }
    guard let index = parameters.member("at")?.int else {
      throw Parameters.refuse("at", "must be a whole number: the index of a child")
    }
    return index
  }
}

extension JSONView {
  fileprivate func member(utf8 name: String) -> JSONView? {
    var name = name
    return name.withUTF8 { member(utf8: UnsafeRawBufferPointer($0)) }
  }
}
