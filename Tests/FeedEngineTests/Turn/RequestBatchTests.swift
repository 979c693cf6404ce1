import FeedJSON
import FeedModel
import FeedServer
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Requests keep their bytes and tokens while their batch grows; batches are numbered consecutively.
struct RequestBatchTests {
  private let handle = SessionHandle(index: 3, generation: 9)

  private func add(_ text: String, to batch: RequestBatch, isLogged: Bool) throws {
    let bytes = Array(text.utf8)
    try bytes.withUnsafeBytes { payload in
      let message = try batch.scan(payload)
      var id: JSONView?
      let request = try Request(reading: message, id: &id)
      let method = try require(Method(request.method))
      if isLogged {
        _ = batch.addLogged(method, request, message, of: handle, payload: payload)
      } else {
        _ = batch.addWaiting(method, request, message, of: handle, payload: payload)
      }
    }
  }

  @Test func requestsKeepTheirBytesAndTokens() throws {
    let batch = RequestBatch(maxDepth: 64)
    for number in 0..<500 {
      let text =
        #"{"jsonrpc":"2.0","id":\#(number),"method":"update","params":{"feed":"c","element":{"id":\#(number)}}}"#
      try add(text, to: batch, isLogged: number % 3 != 0)
      // A request that is scanned but not added leaves no bytes.
      _ = try? Array("[1,2,".utf8).withUnsafeBytes { try batch.scan($0) }
    }
    expectEqual(batch.count, 500)
    for number in 0..<500 {
      let (id, parameters) = batch.request(batch[number])
      expectEqual(id?.int, number)
      expectEqual(parameters.member("element")?.member("id")?.int, number)
      expectEqual(batch[number].kind, (number % 3 != 0 ? .logged : .waiting))
    }
  }

  @Test func logReceivesWholeFramesInOrder() throws {
    let batch = RequestBatch(maxDepth: 64)
    batch.addLogged(.evict(after: "f"))
    try add(#"{"jsonrpc":"2.0","method":"set","params":{}}"#, to: batch, isLogged: true)
    try add(#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, to: batch, isLogged: false)
    let sealed = batch.seal(number: 1, at: Instant(nanoseconds: 5), revision: 7)
    var texts: [String] = []
    var rest = UnsafeRawBufferPointer(rebasing: sealed.frames[...])
    while case .complete(let payload) = Frame.first(in: rest, maxFrame: 1000) {
      texts.append(String(decoding: payload, as: UTF8.self))
      rest = UnsafeRawBufferPointer(rebasing: rest[(4 + payload.count)...])
    }
    expect(rest.isEmpty)
    let eviction = #"{"method":"$evict","params":{"after":"f"}}"#
    expectEqual(texts, [eviction, #"{"jsonrpc":"2.0","method":"set","params":{}}"#])
    expect(sealed.number == 1 && sealed.revision == 7 && sealed.at == Instant(nanoseconds: 5))
    batch.removeAll()
    expect(batch.count == 0 && batch.frames.isEmpty && batch.number == 0)
  }

  @Test func onlyTheFirstBatchInFlightKnowsItsRevision() {
    let log = ArrayLog(window: 3)
    log.isHeld = true
    var batches = PendingBatches(log, maxDepth: 64)
    for _ in 0..<3 {
      batches.open.addLogged(.evict(after: "f"))
      let canAppend = batches.canAppend
      expect(canAppend)
      batches.append(at: Instant(nanoseconds: 1), revision: 4)
    }
    let isFull = !batches.canAppend && !batches.isEmpty
    expect(isFull)
    expectEqual(log.inFlight.map(\.number), [1, 2, 3])
    expectEqual(log.inFlight.map(\.revision), [4, nil, nil])
    func number(through number: UInt64) -> UInt64? { batches.first(through: number)?.number }
    func executeFirst() { if let batch = batches.first(through: 3) { batches.didExecute(batch, in: 0) } }
    expectEqual(number(through: 0), nil)
    expectEqual(number(through: 2), 1)
    executeFirst()
    expectEqual(number(through: 2), 2)
    executeFirst()
    expectEqual(number(through: 2), nil)
    executeFirst()
    let isEmpty = batches.isEmpty && batches.isIdle
    expect(isEmpty)
  }

  @Test func lineCountsItsRequests() {
    var line = RequestLine()
    expect(line.isEmpty && line.takesMore)
    for _ in 0..<100 { line.add(bytes: 10, isRead: false, isHeld: false) }
    expect(line.bytes == 1000 && line.takesMore)
    for _ in 0..<32 { line.add(bytes: 1, isRead: true, isHeld: false) }
    expect(!line.takesMore, "a read blocks further requests because its answer may be large")
    for _ in 0..<100 { line.remove(bytes: 10, isRead: false) }
    for _ in 0..<32 { line.remove(bytes: 1, isRead: true) }
    expect(line.isEmpty && line.takesMore && line.bytes == 0)
    line.add(bytes: 5, isRead: true, isHeld: true)
    expect(!line.takesMore, "a long answer blocks further requests")
    line.remove(bytes: 5, isRead: true)
    expect(line.takesMore)
  }

  @Test("a frame is taken without a copy", arguments: [true, false])
  func takenFrames(isLogged: Bool) throws {
    let frame = EngineHarness.request("update", #"{"feed":"c","element":{}}"#, id: 7)
    var input = InputBuffer()
    defer { input.removeAll() }
    (frame + [1, 2, 3, 4, 5]).withUnsafeBytes { input.replace($0) }
    let payload = UnsafeRawBufferPointer(rebasing: input.bytes[Frame.headerLength..<frame.count])
    let batch = RequestBatch(maxDepth: 64)
    let message = try batch.scan(payload)
    var id: JSONView?
    let request = try Request(reading: message, id: &id)
    let address = id?.text.baseAddress
    let canTake = batch.canTake(payload, from: input, isLogged: isLogged)
    expect(canTake)
    _ = batch.add(.update, request, message, isLogged: isLogged, of: handle, payload: payload, takingFrom: &input)
    let taken = batch.request(batch[0]).id
    expectEqual(taken?.int, 7)
    expectEqual(taken?.text.baseAddress, address)
    expectEqual(Array(input.bytes), [1, 2, 3, 4, 5])
    expectEqual(batch.frames.count, isLogged ? frame.count : 0)
    // The batch has the bytes of another request of its kind now.
    let next = UnsafeRawBufferPointer(rebasing: input.bytes[Frame.headerLength...])
    let canTakeAnother = batch.canTake(next, from: input, isLogged: isLogged)
    expect(!canTakeAnother)
    batch.removeAll()
    expectEqual(batch.byteCount, 0)
  }

  /// The batch takes the memory of a long request. What was received with it is decoded afterwards, wherever the input was cut.
  @Test("long requests are taken out of the input", arguments: [true, false])
  func longRequests(isDurable: Bool) {
    func update(_ id: Int, _ count: Int) -> [UInt8] {
      let element = #"{"id":\#(id),"text":"\#(String(repeating: "x", count: count))"}"#
      return EngineHarness.request("update", #"{"feed":"c","element":\#(element)}"#, id: id)
    }
    let ping = EngineHarness.request("ping", id: 2)
    let (first, short, last) = (update(1, 300_000), update(3, 10), update(4, 270_000))
    let input = first + ping + short + last
    let end = first.count
    for cut in [0, 1, 5000, end - 1, end, end + 1, end + 4, end + ping.count, end + 60, input.count - 1] {
      // Without a log, only requests that may take several turns wait in a batch.
      let slices = isDurable ? nil : SlicedWork("slices", slice: 0, isEager: true)
      let harness = EngineHarness(isDurable: isDurable, slices: slices)
      let client = harness.connect()
      _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
      let known = harness.stored.count
      harness.deliver(client, Array(input[..<cut]))
      harness.deliver(client, Array(input[cut...]))
      let ids = harness.take(client).compactMap { Value($0)?["id"]?.int }
      expectEqual(ids, [1, 2, 3, 4], "cut after \(cut) bytes")
      let stored = harness.stored[known...].flatMap { Array($0.frames) }
      let isSame = !isDurable || stored == first + short + last
      expect(isSame, "cut after \(cut) bytes")
      expectEqual(harness.engine.catalog.feeds["c"]?.count, 3)
      expect(harness.waitingInput(of: client) == 0 && harness.engine.sessions.quotas.bytes(of: 1000) == 0)
    }
  }
}
