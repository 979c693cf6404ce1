/// Appends to one content of a slots feed, and removals from its end, at several lengths of the content.
struct SlotsMeasures {
  let count: Int
  let window: Int
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("appends to a content of a watched slots feed, and removals of what was appended")
    var table = SizeTable()
    for size in sizes {
      let frames = Texts()
      frames.append(array: "posts", count: size)
      frames.append(array: "ads", count: size / 2)
      frames.append(
        frame: Texts.request(
          "define",
          #"{"feed":"both","kind":"slots","contents":{"Post":"posts","Ad":"ads"},"pattern":["Post","Post","Post","Ad"],"repeatables":["Post"],"header":["Ad","Post"]}"#
        ))
      let driver = try EngineDriver(
        preparation: frames, watched: ["both"], frames: steps(at: size), window: window)
      let sample = try Sample.measure(runs: report.runs) { try driver.run(count) }
      try table.add("rows", size: size, sample, count: count, report)
    }
  }

  /// An append and a removal, again and again.
  private func steps(at size: Int) -> Texts {
    let frames = Texts()
    for step in 0..<512 {
      frames.append(frame: Texts.request("insert", #"{"feed":"posts","elements":[{"new":\#(step)}]}"#))
      frames.append(frame: Texts.request("remove", #"{"feed":"posts","at":[\#(size)]}"#))
    }
    return frames
  }
}
