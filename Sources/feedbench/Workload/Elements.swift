/// Elements such as people push: some members, numbers, a nested object, a text that fills up.
enum Elements {
  /// An element of exactly `bytes` bytes, or the fewest above it that are possible.
  static func text(id: Int, bytes: Int, _ random: inout Random) -> String {
    let head = """
      {"id":\(id),"kind":"\(kinds[random.below(kinds.count)])","priority":\(random.below(10)),\
      "read":\(random.below(2) == 0),"at":\(1_700_000_000_000 + random.below(1_000_000_000)),\
      "score":\(random.below(1000)).\(random.below(90) + 10),"author":{"name":"\(random.words(8))","id":\(random.below(1_000_000))},"text":"
      """
    return head + random.words(max(1, bytes - head.utf8.count - 2)) + "\"}"
  }

  /// `count` elements with the identities 0, 1, 2, ….
  static func texts(_ count: Int, bytes: Int) -> Texts {
    var random = Random()
    let texts = Texts()
    for id in 0..<count { texts.append(text(id: id, bytes: bytes, &random)) }
    return texts
  }

  private static let kinds = ["mail", "alert", "post", "event"]
}
