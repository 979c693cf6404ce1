import FeedSystem
import Testing

@Suite("Sockets handed over")
struct ListenFDsTests {
  @Test(
    arguments: [
      ([:], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "1"], ["3 unknown"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"], ["3 a", "4 b"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": ":b"], ["3 unknown", "4 b"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a"], ["3 a", "4 unknown"]),
      (["LISTEN_PID": "8", "LISTEN_FDS": "1"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "0"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "-1"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2000000000"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "one"], []),
      (["LISTEN_FDS": "1"], []),
    ] as [([String: String], [String])])
  func variables(variables: [String: String], sockets: [String]) {
    let passed = ListenFDs(Environment(variables), pid: 7)
    #expect(passed.sockets.map { "\($0.descriptor) \($0.name)" } == sockets)
  }
}
