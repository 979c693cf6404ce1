import FeedJSON
import Testing

@Suite struct ScannerTests {
  @Test func membersAndValues() throws {
    try withJSON(#" {"a":1, "b" : [true,false,null, "x\n"] , "a": 2.50} "#) { view in
      #expect(view.kind == .object)
      #expect(view.count == 3)
      #expect(!view.isCompact)
      #expect(view.member("a").map { String(decoding: $0.text, as: UTF8.self) } == "2.50")
      #expect(view.member("b")?.element(at: 3)?.string == "x\n")
      #expect(view.member("c") == nil)
      #expect(view.member("b")?.elements.map(\.kind) == [.true, .false, .null, .string])
      var buffer = ByteBuffer()
      buffer.append(compact: view)
      #expect(String(decoding: buffer.bytes, as: UTF8.self) == #"{"a":1,"b":[true,false,null,"x\n"],"a":2.50}"#)
      #expect(view.compactLength == buffer.count)
    }
  }
}
