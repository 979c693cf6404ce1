import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Requests that are executed together, decoded once: those that the log must store first, and others that wait for
/// them.
///
/// Owns the frames that the log stores, copies of the requests that are not stored, and one tape that grows as requests
/// are added. Entries hold offsets, so bytes and tape may be reallocated until the batch is sealed. A batch is reused
/// after ``removeAll()``.
///
/// Invariant: the bytes of every entry are inside the buffer of its kind, and its tokens are on the tape.
final class RequestBatch {
  /// One request, in the order of execution.
  struct Entry {
    enum Kind: UInt8 {
      /// Stored by the log. Executed even if its connection is gone.
      case logged
      /// Not stored; waits for earlier requests of its connection.
      case waiting
      /// A JSON-RPC batch that waits. Its requests are added one by one when it is first in its line.
      case array
      /// Answered with an error when it is first in its line. `index` is that of the refusal.
      case refused
      /// A request of the daemon itself. `index` is that of the internal request.
      case `internal`
    }

    let session: SessionHandle
    let kind: Kind
    var method = Method.ping
    /// The offset of the payload, in `frameBytes` if it is logged, otherwise in `waitingBytes`.
    var start: UInt32 = 0
    /// The bytes of the payload; for a refusal, those of its id.
    var length: UInt32 = 0
    /// The place of the message on the tape; for a refusal or an internal request, its `index`.
    let token: UInt32
    /// The tokens of its id and its parameters; `none` if absent.
    var id = none
    var params = none
    /// The size of the tape that a long text brought along, in tokens; 0 for other texts.
    var tape: UInt32 = 0

    static let none = UInt32.max
    var index: Int { Int(token) }
    /// The memory in bytes that its connection is charged: the payload, and the tokens of a long text, which take several
    /// times as much.
    var memory: Int { Int(length) &+ Int(tape) &* JSONScanner.tokenSize }
  }

  /// An error response that is written after the answers of earlier requests.
  struct Refusal {
    let error: FeedError
    /// The id as JSON text; nil if there is none, so that the response has `id` null.
    var id: [UInt8]?
    /// The reason why the stream cannot be parsed further and the connection is closed; nil for an error of one
    /// request.
    var endOfStream: String?
  }

  /// The work of the clients' requests, and whose they are.
  private struct Load {
    private(set) var work = 0
    private var users: Set<UInt32> = []
    /// The user that was seen last.
    private var last: UInt32?

    mutating func add(_ work: Int, of user: UInt32) {
      self.work &+= work
      if last == user { return }
      last = user
      users.insert(user)
    }

    func isShared(by user: UInt32) -> Bool { last == user || users.contains(user) }

    mutating func removeAll() {
      work = 0
      users.removeAll(keepingCapacity: true)
      last = nil
    }
  }

  private var scanner: JSONScanner
  private var frameBytes = ByteBuffer()
  private var waitingBytes = ByteBuffer()
  private var entries: [Entry] = []
  private var refusals: [Refusal] = []
  private var internals: [InternalRequest] = []
  /// The user that the batch names last as the owner of the feeds that its requests define.
  private var owner: UInt32?
  /// The number of tokens that belong to entries.
  private var kept = 0
  /// The number in the log; 0 until the batch is sealed.
  private(set) var number: UInt64 = 0
  /// Whether a logged request may need more space in the state.
  private var grows = false
  private var load = Load()
  /// The time at which the batch is executed. Valid once it is sealed.
  private(set) var at = Instant(nanoseconds: 0)
  /// The revision before the batch, if it was known.
  private(set) var revision: UInt64?

  /// The memory in bytes, and the room for tokens, that a batch keeps for later requests.
  private static let keptCapacity = 1 << 20
  private static let keptTokens = 1 << 18

  init(maxDepth: Int) { scanner = JSONScanner(maxDepth: maxDepth) }

  var count: Int { entries.count }
  /// The bytes that the log stores.
  var frames: UnsafeRawBufferPointer { frameBytes.bytes }
  /// The bytes of the requests in the batch.
  var byteCount: Int { frameBytes.count &+ waitingBytes.count }
  /// The capacity of the tape in tokens.
  var tapeCapacity: Int { scanner.capacity }

  subscript(index: Int) -> Entry { entries[index] }

  // MARK: Decoding

  /// Scans a text onto the tape, after the tokens of the entries. The next scan overwrites a text that was not added.
  func scan(_ text: UnsafeRawBufferPointer) throws(JSONError) -> JSONView { try scanner.scan(text, after: kept) }

  /// Scans a text like ``scan(_:)`` if it has a known form; otherwise returns nil.
  @inline(__always)
  func scan(_ text: UnsafeRawBufferPointer, like form: inout UpdateForm) -> (message: JSONView, request: Request)? {
    form.scan(text, after: kept, &scanner)
  }

  /// Takes the tokens of a long text, as if it was just scanned. The batch must be empty.
  func take(_ text: LongText, of bytes: UnsafeRawBufferPointer) -> JSONView {
    precondition(text.isComplete && entries.isEmpty && kept == 0, "there is no room for the tokens")
    swap(&scanner, &text.scanner)
    return scanner.view(at: 0, of: bytes)
  }

  // MARK: Adding

  /// Counts the work for a request of a user, which the caller adds next.
  func count(work: Int, of user: UInt32) { load.add(work, of: user) }

  /// An estimate of the work for the clients' requests, in units of about a microsecond.
  var work: Int { load.work }

  func hasRequests(of user: UInt32) -> Bool { load.isShared(by: user) }

  /// Adds the request that was just scanned, to be stored by the log. Returns the memory to charge for it.
  func addLogged(
    _ method: Method, _ request: Request, _ message: JSONView, of session: SessionHandle,
    payload: UnsafeRawBufferPointer
  ) -> Int {
    let frame = frameBytes.beginFrame()
    let start = frameBytes.count
    frameBytes.append(payload)
    frameBytes.endFrame(at: frame)
    return add(.logged, method, request, message, of: session, start: start, length: payload.count)
  }

  /// Adds the request that was just scanned. Takes its frame out of the input that begins with it, so that a long request is not
  /// copied. Returns the memory to charge for it.
  /// - Parameter isLogged: whether the log stores the request.
  func add(
    _ method: Method, _ request: Request, _ message: JSONView, isLogged: Bool, of session: SessionHandle,
    payload: UnsafeRawBufferPointer, takingFrom input: inout InputBuffer
  ) -> Int {
    assert(canTake(payload, from: input, isLogged: isLogged))
    let length = Frame.headerLength &+ payload.count
    let memory = input.takeFirst(length)
    if let start = memory.baseAddress {
      if isLogged {
        frameBytes.replace(by: start, count: length, capacity: memory.count)
      } else {
        waitingBytes.replace(by: start, count: length, capacity: memory.count)
      }
    }
    return add(
      isLogged ? .logged : .waiting, method, request, message, of: session, start: Frame.headerLength,
      length: payload.count)
  }

  /// Whether the frame of a request can be taken out of the input: the input begins with it, and the batch has no bytes of its kind.
  func canTake(_ payload: UnsafeRawBufferPointer, from input: InputBuffer, isLogged: Bool) -> Bool {
    (isLogged ? frameBytes.isEmpty : waitingBytes.isEmpty) && Self.isFirst(payload, of: input)
  }

  private static func isFirst(_ payload: UnsafeRawBufferPointer, of input: InputBuffer) -> Bool {
    input.start.map { UnsafeRawPointer($0) + Frame.headerLength } == payload.baseAddress
  }

  /// Adds the request that was just scanned, after others of its connection. Returns the memory to charge for it.
  func addWaiting(
    _ method: Method, _ request: Request, _ message: JSONView, of session: SessionHandle,
    payload: UnsafeRawBufferPointer
  ) -> Int {
    let start = waitingBytes.count
    waitingBytes.append(payload)
    return add(.waiting, method, request, message, of: session, start: start, length: payload.count)
  }

  /// Adds the JSON-RPC batch that was just scanned, after requests of its connection.
  func add(array message: JSONView, of session: SessionHandle, payload: UnsafeRawBufferPointer) {
    let start = UInt32(truncatingIfNeeded: waitingBytes.count)
    waitingBytes.append(payload)
    append(
      Entry(
        session: session, kind: .array, start: start, length: UInt32(truncatingIfNeeded: payload.count),
        token: UInt32(truncatingIfNeeded: scanner.place(of: message))))
    kept = scanner.tokenCount
  }

  /// Adds an error response, after requests of its connection. Returns the memory to charge for it.
  func addRefusal(_ refusal: Refusal, of session: SessionHandle) -> Int {
    let entry = Entry(
      session: session, kind: .refused, length: UInt32(truncatingIfNeeded: refusal.id?.count ?? 0),
      token: UInt32(truncatingIfNeeded: refusals.count))
    append(entry)
    refusals.append(refusal)
    return entry.memory
  }

  /// Adds a request of the daemon itself, to be stored by the log.
  func addLogged(_ request: InternalRequest) {
    let frame = frameBytes.beginFrame()
    request.append(to: &frameBytes)
    frameBytes.endFrame(at: frame)
    addWaiting(request)
  }

  /// Adds a request of the daemon itself that the log does not store.
  func addWaiting(_ request: InternalRequest) {
    append(Entry(session: .none, kind: .internal, token: UInt32(truncatingIfNeeded: internals.count)))
    internals.append(request)
  }

  /// Adds the user that is charged for the feeds that the next request defines.
  /// - Parameter isLogged: whether the log stores the request.
  func charge(to owner: UInt32, isLogged: Bool) {
    if self.owner == owner { return }
    self.owner = owner
    if isLogged { addLogged(.owner(owner)) } else { addWaiting(.owner(owner)) }
  }

  private func add(
    _ kind: Entry.Kind, _ method: Method, _ request: Request, _ message: JSONView, of session: SessionHandle,
    start: Int, length: Int
  ) -> Int {
    assert(scanner.place(of: message) == kept, "another text was scanned since")
    let id = request.id.map { UInt32(truncatingIfNeeded: scanner.place(of: $0)) } ?? Entry.none
    let params = request.params.map { UInt32(truncatingIfNeeded: scanner.place(of: $0)) } ?? Entry.none
    // The tape of a long text holds no other tokens.
    let tape = kept == 0 && LongTexts.isLong(length) ? scanner.capacity : 0
    let entry = Entry(
      session: session, kind: kind, method: method, start: UInt32(truncatingIfNeeded: start),
      length: UInt32(truncatingIfNeeded: length), token: UInt32(truncatingIfNeeded: kept),
      id: id, params: params, tape: UInt32(truncatingIfNeeded: tape))
    append(entry)
    if kind == .logged && !grows { grows = request.mayGrow(method) }
    kept = scanner.tokenCount
    return entry.memory
  }

  private func append(_ entry: Entry) {
    assert(number == 0, "a sealed batch takes no more requests")
    entries.append(entry)
    checkInvariants()
  }

  // MARK: Executing

  /// Seals the batch: sets its number and the time at which it is executed.
  func seal(number: UInt64, at moment: Instant, revision: UInt64?) -> LogBatch {
    assert(self.number == 0 && number > 0)
    self.number = number
    self.revision = revision
    at = moment
    return LogBatch(number: number, at: moment, revision: revision, frames: frames, grows: grows, owner: self)
  }

  /// Sets the time at which the batch is executed, which a log of several members decides.
  func setMoment(_ moment: Instant) { at = moment }

  /// The id and the parameters of an entry, decoded from its bytes and tokens. Valid until the batch changes.
  func request(_ entry: Entry) -> (id: JSONView?, parameters: Parameters) {
    let bytes = bytes(of: entry)
    let params = entry.params == Entry.none ? nil : scanner.view(at: Int(entry.params), of: bytes)
    return (entry.id == Entry.none ? nil : scanner.view(at: Int(entry.id), of: bytes), Parameters(object: params))
  }

  func array(_ entry: Entry) -> JSONView { scanner.view(at: entry.index, of: bytes(of: entry)) }
  func refusal(_ entry: Entry) -> Refusal { refusals[entry.index] }
  func internalRequest(_ entry: Entry) -> InternalRequest { internals[entry.index] }

  /// Lets the collection that a connection updates look at a coming request of it.
  @inline(__always)
  func lookAhead(from index: Int, _ session: Session) {
    let ahead = index &+ CollectionKind.lookahead
    guard ahead < entries.count, entries[ahead].session == session.handle, entries[ahead].method == .update
    else { return }
    session.last.feed.withLargeCollection { $0.lookAhead(at: bytes(of: entries[ahead])) }
  }

  private func bytes(of entry: Entry) -> UnsafeRawBufferPointer {
    let memory = entry.kind == .logged ? frameBytes.pointer : waitingBytes.pointer
    return UnsafeRawBufferPointer(start: memory + Int(entry.start), count: Int(entry.length))
  }

  /// Empties the batch for reuse. Frees what long requests took.
  func removeAll() {
    frameBytes.removeAll(keepingCapacity: frameBytes.capacity <= Self.keptCapacity)
    waitingBytes.removeAll(keepingCapacity: waitingBytes.capacity <= Self.keptCapacity)
    entries.removeAll(keepingCapacity: entries.capacity <= 1 << 16)
    if !refusals.isEmpty { refusals.removeAll() }
    if !internals.isEmpty { internals.removeAll() }
    owner = nil
    grows = false
    load.removeAll()
    kept = 0
    scanner.releaseMemory(beyond: Self.keptTokens)
    number = 0
    revision = nil
  }

  /// Frees tape memory that recent requests did not need. Called about once a second.
  func releaseUnused() {
    if kept == 0 { scanner.releaseUnused() }
  }

  /// Frees most memory of the tape.
  func releaseMemory() {
    if kept == 0 { scanner.releaseMemory(beyond: 1 << 16) }
  }

  func checkInvariants() {
    #if CHECK_INVARIANTS
      guard let last = entries.last else { return }
      switch last.kind {
      case .logged: precondition(Int(last.start) + Int(last.length) <= frameBytes.count && last.index <= kept)
      case .waiting, .array: precondition(Int(last.start) + Int(last.length) <= waitingBytes.count)
      case .refused: precondition(last.index <= refusals.count)
      case .internal: precondition(last.index <= internals.count)
      }
    #endif
  }
}
