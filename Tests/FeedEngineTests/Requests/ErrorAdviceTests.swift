import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Messages of errors say what to change.
@Suite struct ErrorAdviceTests {
  @Test(arguments: [
    // `replace` would not help.
    (
      "define", #"{"feed":"list","kind":"single"}"#,
      "cannot change feed \"list\": its kind is array; undefine it before you define it as single"
    ),
    (
      "define", #"{"feed":"c","kind":"collection","bins":[{"name":"x"},{"name":"x"}]}"#,
      "parameter bins[1].name is \"x\", the name of another bin"
    ),
    (
      "transaction", #"{"ops":[{"method":"transaction","params":{"ops":[]}}]}"#,
      "operation 0: parameter ops[0].method is \"transaction\", which is no operation of a transaction; send it by itself"
    ),
    ("insert", #"{"feed":"list","element":1,"at":null}"#, "parameter at must be a row or an array of rows"),
  ])
  func messageSaysWhatToChange(_ method: String, _ params: String, _ message: String) {
    let harness = EngineHarness()
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let answer = harness.ask(client, method, params).compactMap(\.json).last
    expectEqual(answer?["error"]?["message"]?.string, message)
  }
}
