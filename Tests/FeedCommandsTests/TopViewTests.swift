import TestSupport
import Testing

@testable import FeedCommands

@Suite("the screen of top") struct TopViewTests {
  private func sample(_ seconds: UInt64, requests: Int, clients: [(name: String, requests: Int)], pid: Int? = nil)
    throws -> TopSample
  {
    let stats = "{\"revision\":1234,\"uptime\":3720,\"requests\":\(requests),\"queuedBytes\":2048,\"feeds\":3}"
    var sample = try withJSON(stats) { TopSample(time: seconds * 1_000_000_000, stats: $0) }
    let rows = clients.enumerated().map { place, client in
      "{\"connection\":\(place + 7),\"name\":\"\(client.name)\",\"uid\":0,\"pid\":\(pid ?? place + 1),"
        + "\"queued\":0,\"held\":0,\"lag\":0,\"resets\":0,\"requests\":\(client.requests),\"watches\":[\"f\"]}"
    }
    try withJSON("{\"clients\":[\(rows.joined(separator: ","))]}") { sample.take(clients: $0) }
    return sample
  }

  private func view() throws -> TopView {
    var view = TopView(palette: Palette(isOn: false))
    view.add(try sample(1, requests: 100, clients: [("slow", 1), ("fast", 1)]))
    view.add(try sample(3, requests: 3100, clients: [("slow", 3), ("fast", 2001)]))
    return view
  }

  @Test("rates are differences over the time between samples") func rates() throws {
    let lines = try view().lines(width: 80, height: 24)
    expectEqual(lines[0], "feedd  up 1 h 2 min  revision 1,234  2 clients  ? help")
    expect(lines[1].hasPrefix("requests") && lines[1].contains(" 1,500/s"))
    expect(lines.contains { $0.contains("queued 2.0 KB") })
    let rows = lines.suffix(2).map { $0.split(separator: " ").map(String.init) }
    expectEqual(rows.map { $0[0] }, ["fast", "slow"])
    expectEqual(rows.map { $0[3] }, ["1,000", "1"])
  }

  @Test("connections of one process with one name have rates of their own") func connectionsOfOneProcess() throws {
    var view = TopView(palette: Palette(isOn: false))
    view.add(try sample(1, requests: 0, clients: [("app", 10), ("app", 5_000)], pid: 9))
    view.add(try sample(2, requests: 0, clients: [("app", 12), ("app", 5_007)], pid: 9))
    let rows = view.lines(width: 80, height: 24).suffix(2).map { $0.split(separator: " ").map(String.init) }
    expectEqual(rows.map { $0[3] }, ["7", "2"])
  }

  @Test("counters of a hostile daemon do not stop the program") func extremes() throws {
    var view = TopView(palette: Palette(isOn: false))
    view.add(try sample(1, requests: .min, clients: [("one", .min)]))
    view.add(try sample(2, requests: .max, clients: [("one", .max)]))
    let lines = view.lines(width: 80, height: 24)
    expect(lines[1].hasPrefix("requests") && lines[1].contains("1,000,000,000,000,000/s"))
    expectEqual(lines.last?.contains("1,000,000,000,000,000"), true)
  }

  @Test("keys sort, reverse, filter and pause") func keys() throws {
    var view = try view()
    func names() -> [String] {
      let lines = view.lines(width: 80, height: 24)
      let header = lines.firstIndex { $0.hasPrefix("CLIENT") } ?? 0
      return lines[(header + 1)...].map { $0.split(separator: " ").first.map(String.init) ?? "" }
    }
    let ends = view.take(.character("r"))
    expect(!ends)
    expectEqual(names(), ["slow", "fast"])
    for key in "/FAS" { _ = view.take(.character(key)) }
    expectEqual(names(), ["fast"])
    _ = view.take(.escape)
    _ = view.take(.character(" "))
    view.add(try sample(4, requests: 9999, clients: []))
    expectEqual(names(), ["slow", "fast"])
    let quits = view.take(.character("q"))
    expect(quits)
  }

  @Test("on a small screen what is zero gives way, and the connections keep their place") func small() throws {
    var view = try view()
    let lines = view.lines(width: 40, height: 10)
    expectEqual(
      lines,
      [
        "feedd  up 1 h 2 min  revision 1,234", "requests       1,500/s  █", "queued 2.0 KB  feeds 3",
        "CLIENT   PID  REQ/S↓  QUEUED  WATCHES", "fast       2   1,000     0 B        1",
        "slow       1       1     0 B        1",
      ])
    _ = view.take(.character("s"), width: 40, height: 10)
    expect(view.lines(width: 40, height: 10)[3].contains("QUEUED↓"))
    _ = view.take(.character("?"), width: 40, height: 10)
    expectEqual(
      view.lines(width: 40, height: 10)[2...3],
      [
        "  s S  Tab arrows  sort by the next,", "                   previous column",
      ])
    _ = view.take(.end, width: 40, height: 10)
    expectEqual(view.lines(width: 40, height: 10).last, "Any other key goes back.")
  }

  @Test("every line fits the screen", arguments: [(40, 10), (20, 5), (200, 60)]) func sizes(width: Int, height: Int)
    throws
  {
    let lines = try view().lines(width: width, height: height)
    expect(lines.count <= height)
    expect(lines.allSatisfy { DisplayWidth.columns(of: $0) <= width })
  }

  @Test("numbers are shown with units") func units() {
    expectEqual(TopView.bytes(999), "999 B")
    expectEqual(TopView.bytes(1500), "1.5 KB")
    expectEqual(TopView.bytes(999_999), "1.0 MB")
    expectEqual(TopView.bytes(32_000_000), "32 MB")
    expectEqual(TopView.graph([0, 4, 8]), "▁▅█")
  }
}
