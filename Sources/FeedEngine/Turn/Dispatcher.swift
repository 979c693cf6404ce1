import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Decodes frames to requests, and executes each or adds it to the open batch.
///
/// A request that may change something joins the open batch, which goes to the log. A read without earlier unanswered
/// requests on its connection is executed immediately; other requests wait in their line. Invariant: the requests of a
/// connection are executed in order.
struct Dispatcher: ~Copyable {
  private let engine: Engine
  /// The batches. Not private, because `Completion` executes them.
  var batches: PendingBatches
  /// Connections whose next request did not fit in the open batch.
  private var stalled: [SessionHandle] = []
  /// Whether the open batch took the frame that was decoded last out of the input of its connection.
  private var tookInput = false
  /// Whether a read of the connection that is decoded was executed. Its later reads wait behind those of its user's other
  /// connections, so that one with many long reads does not keep them waiting.
  private var hasRead = false

  /// The units of work (see `WorkCost`) left in this turn for new JSON-RPC batches.
  private var arrayBudget = LongAnswers.turnBudget
  private var looks = ClockLooks()
  /// Whether the time of this turn for requests that change feeds was used up at the last look.
  private var isTurnOver = false

  init(_ engine: Engine, _ log: any CommitLog) {
    self.engine = engine
    batches = PendingBatches(log, maxDepth: engine.limits.maxDepth)
  }

  /// Whether the next turn has a batch to append or to execute.
  var hasWork: Bool {
    let hasOwnWork = !engine.ownWork.queue.isEmpty
    if batches.canAppend && (!batches.open.frames.isEmpty || hasOwnWork) { return true }
    if batches.storesNothing && hasOwnWork { return true }
    return batches.hasOnlyWaiting
  }

  // MARK: Frames

  /// Decodes whole frames at the beginning of `bytes`, and executes each or adds it to the open batch. Returns the
  /// number of decoded bytes that are still in the input.
  mutating func decode(_ bytes: UnsafeRawBufferPointer, of session: Session) -> Int {
    let before = engine.outbox.size
    tookInput = false
    hasRead = false
    var count = decodeFrames(bytes, of: session)
    engine.status.counters.bytesIn &+= UInt64(count)
    if tookInput {
      count = 0
      // What follows waits, because the batch has no room for it.
      if session.input.held.count > 0 {
        stall(session)
        session.input.isPaused = true
      }
    }
    engine.outbox.shares.add(engine.outbox.size &- before, of: session.peer.uid)
    return count
  }

  private mutating func decodeFrames(_ bytes: UnsafeRawBufferPointer, of session: Session) -> Int {
    var count = 0
    var ahead = FramesAhead()
    while count < bytes.count {
      if session.isClosing || session.line.isCut { return bytes.count }
      guard engine.wantsInput(session) else {
        session.input.isPaused = true
        return count
      }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
      switch Frame.first(in: rest, maxFrame: engine.limits.maxFrame) {
      case .incomplete:
        session.input.notePartial(rest.count, now: engine.now)
        return count
      case .badLength(let length):
        refuseStream(of: session, length: length)
        return bytes.count
      case .complete(let payload):
        if batches.storesNothing {
          session.last.feed.withLargeCollection { ahead.look(in: bytes, from: count, of: $0) }
        }
        // A complete frame is progress, also while it waits.
        session.input.partialSince = nil
        guard dispatchFrame(payload, of: session) else {
          session.input.isPaused = true
          return count
        }
        count &+= Frame.headerLength &+ payload.count
        if tookInput { return count }
      }
    }
    return count
  }

  /// Decodes the payload of a frame. Returns false if the open batch has no room for it; the caller keeps the frame to retry it.
  private mutating func dispatchFrame(_ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    let message: JSONView
    do throws(JSONError) {
      if LongTexts.isLong(payload.count) {
        guard let text = try scanLong(payload, of: session) else { return false }
        return dispatchLong(text, payload, of: session)
      }
      if let (message, update) = batches.open.scan(payload, like: &session.last.form) {
        return dispatchRequest(message, payload, of: session, update: update)
      }
      message = try batches.open.scan(payload)
    } catch {
      engine.countRequest(of: session, 1)
      refuse(session, engine.refusal(of: error), id: nil)
      return true
    }
    if message.kind == .array { return dispatch(array: message, payload, of: session) }
    return dispatchRequest(message, payload, of: session)
  }

  // MARK: Long texts

  /// Scans a part of a long text, or checks a part of its operations. Returns nil if these are not complete; the caller must retry
  /// later.
  private mutating func scanLong(_ text: UnsafeRawBufferPointer, of session: Session) throws(JSONError) -> LongText? {
    let long = engine.sessions.longTexts.text(of: session, maxDepth: engine.limits.maxDepth)
    let isScanning = !long.isComplete
    if isScanning {
      guard let count = engine.sessions.longTexts.takeTurn(session) else { return nil }
      do throws(JSONError) {
        try long.scan(text, tokens: count)
      } catch {
        engine.sessions.longTexts.remove(session)
        throw error
      }
      if !long.isComplete { return nil }
    }
    let message = long.scanner.view(at: 0, of: text)
    return engine.checkPart(of: long, message, of: session, hasTurn: isScanning) ? long : nil
  }

  /// Dispatches a request or an array whose text was scanned in parts. Returns false if the caller must retry later.
  private mutating func dispatchLong(_ text: LongText, _ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    let message = text.scanner.view(at: 0, of: payload)
    if message.kind == .array {
      // The end of the requests before it resumes the connection.
      guard session.line.isEmpty else { return false }
      engine.sessions.longTexts.remove(session)
      begin(message, long: (text, payload), of: session)
      return true
    }
    guard let message = take(text, of: payload, session) else { return false }
    return dispatchRequest(message, payload, of: session, checked: text.check)
  }

  /// Moves a long text to the open batch. Returns nil if that has no room, or if feeds cannot be read; the caller must retry
  /// later.
  private mutating func take(_ text: LongText, of bytes: UnsafeRawBufferPointer, _ session: Session) -> JSONView? {
    if batches.open.count > 0 || engine.longWork.isExclusive {
      stall(session)
      return nil
    }
    let message = batches.open.take(text, of: bytes)
    engine.sessions.longTexts.remove(session)
    return message
  }

  /// Executes a request, or adds it to the open batch. Returns false if the batch has no room. The batch scanned no text after it.
  /// - Parameters:
  ///   - update: the request in the message if that has the form of the updates of the connection.
  ///   - checked: how far the request was checked.
  private mutating func dispatchRequest(
    _ message: JSONView, _ payload: UnsafeRawBufferPointer, of session: Session, update: Request? = nil,
    checked: RequestCheck = RequestCheck()
  ) -> Bool {
    engine.countRequest(of: session, 1)
    var id: JSONView?
    do throws(FeedError) {
      let (method, request): (Method, Request)
      if let update {
        (method, request, id) = (.update, update, update.id)
      } else {
        (method, request) = try engine.decode(message, id: &id)
        try Admission.checkMembers(of: message, request.params)
        if method == .update { session.last.form.follow(message, request) }
      }
      if engine.longWork.isExclusive, engine.mustWait(method, request, of: session) { return postpone(session) }
      var check = checked
      if engine.access.isRestricted || method.isCheckedOnArrival {
        check.beginRest()
        _ = try engine.checkAdmission(of: method, request.params, by: session.peer, &check)
      }
      // A peer that stopped reading gets no answers. Its requests that change feeds are still executed.
      if session.input.isDeaf && !method.isLogged { return true }
      if engine.outbox.shares.isUsedUp(by: session.peer.uid) && method.readsFeeds && session.line.array == nil {
        engine.sessions.addResumable(session, isLast: hasRead)
        return deferRequest(of: session)
      }
      let isLogged = !batches.storesNothing && engine.isLogged(method, request, of: session)
      if isLogged, method.isLogged, let shortage = batches.log.shortage, request.mayGrow(method) {
        throw .storageFailed(reason: shortage)
      }
      if isLogged || !session.line.isEmpty || looksWhetherToWait(method, Parameters(object: request.params), payload) {
        let work = engine.work(of: method, Parameters(object: request.params), bytes: payload.count)
        guard batches.takeRoom(bytes: payload.count, work: work, for: session.peer.uid) else {
          return postpone(session)
        }
        if check.hasDefinitions { batches.open.charge(to: session.peer.uid, isLogged: isLogged) }
        addRequest(method, request, message, payload, isLogged: isLogged, of: session)
        return true
      }
      let charged = session.snapshots.charged
      defer { if method.readsFeeds { count(method, snapshots: session.snapshots.charged &- charged, of: session) } }
      let reply = engine.makeReply(to: session, id: request.id?.text)
      try engine.execute(method, Parameters(object: request.params), reply)
    } catch {
      guard error.isAnswered(with: id, message: message) else { return true }
      refuse(session, error.naming(message.member("params")?.member("feed")?.truncatedName), id: id)
    }
    return true
  }

  /// Counts what a read took besides its answer, for its user's share of the turn.
  /// - Parameter bytes: the bytes of the snapshots that it made.
  private mutating func count(_ method: Method, snapshots bytes: Int, of session: Session) {
    hasRead = true
    if bytes > 0 || method == .watch { engine.outbox.shares.add(snapshot: bytes, of: session.peer.uid) }
    engine.outbox.shares.add(work: engine.workOfList(method), of: session.peer.uid)
  }

  /// Leaves a request to be decoded again when there is room for it, or when feeds can be read.
  private mutating func postpone(_ session: Session) -> Bool {
    stall(session)
    return deferRequest(of: session)
  }

  /// Leaves a request to be decoded again when its connection is resumed.
  private func deferRequest(of session: Session) -> Bool {
    engine.countRequest(of: session, -1)
    return false
  }

  /// Whether a request that need not be stored joins the open batch, because it changes feeds and may take several turns,
  /// because another one does, or because the requests before it took long in this turn. Looks at the clock for this.
  private mutating func looksWhetherToWait(
    _ method: Method, _ parameters: @autoclosure () -> Parameters, _ payload: UnsafeRawBufferPointer
  ) -> Bool {
    guard batches.storesNothing, method.isLogged else { return false }
    if engine.longWork.isUnderWay || batches.open.count > 0 { return true }
    isTurnOver = isTurnOver || looks.isTurnOver(engine.longWork)
    if isTurnOver { return true }
    return engine.mayBeLong(method, parameters(), bytes: payload.count)
  }

  private mutating func addRequest(
    _ method: Method, _ request: Request, _ message: JSONView, _ payload: UnsafeRawBufferPointer, isLogged: Bool,
    of session: Session
  ) {
    let isHeld = method.rules.cost == .long && engine.mayAnswerInParts(method, Parameters(object: request.params))
    let memory: Int
    if LongTexts.isLong(payload.count), batches.open.canTake(payload, from: session.input.held, isLogged: isLogged) {
      memory = batches.open.add(
        method, request, message, isLogged: isLogged, of: session.handle, payload: payload,
        takingFrom: &session.input.held)
      tookInput = true
    } else if !isLogged {
      memory = batches.open.addWaiting(method, request, message, of: session.handle, payload: payload)
    } else {
      memory = batches.open.addLogged(method, request, message, of: session.handle, payload: payload)
    }
    session.line.add(bytes: memory, isRead: !isLogged, isHeld: isHeld)
  }

  /// Writes an error response, after the answers of earlier requests.
  private mutating func refuse(_ session: Session, _ error: FeedError, id: JSONView?) {
    if session.line.isEmpty { return engine.refuse(engine.makeReply(to: session, id: id?.text), error) }
    addRefusal(RequestBatch.Refusal(error: error, id: id.map { Array($0.text) }), of: session)
  }

  private mutating func addRefusal(_ refusal: RequestBatch.Refusal, of session: Session) {
    session.line.add(bytes: batches.open.addRefusal(refusal, of: session.handle), isRead: true, isHeld: false)
  }

  /// Ends the stream of a connection after a frame with an invalid length.
  private mutating func refuseStream(of session: Session, length: Int) {
    let reason = "a frame's length is \(grouped(length)) and must be 1 to \(grouped(engine.limits.maxFrame))"
    if session.line.isEmpty { return engine.endStream(of: session, reason: reason) }
    addRefusal(RequestBatch.Refusal(error: .invalidRequest(reason: reason), endOfStream: reason), of: session)
    session.line.isCut = true
  }

  // MARK: JSON-RPC batches

  private mutating func dispatch(array: JSONView, _ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    if session.line.isEmpty {
      begin(array, of: session)
      return true
    }
    let work = WorkCost.answering(bytes: payload.count)
    guard batches.takeRoom(bytes: payload.count, work: work, for: session.peer.uid) else {
      stall(session)
      return false
    }
    batches.open.add(array: array, of: session.handle, payload: payload)
    session.line.add(bytes: payload.count, isRead: true, isHeld: true)
    return true
  }

  /// Begins a JSON-RPC batch that is first in its line.
  /// - Parameter long: its text, with the bytes of the text, if it was scanned in parts.
  mutating func begin(
    _ message: JSONView, long: (text: LongText, bytes: UnsafeRawBufferPointer)? = nil, of session: Session
  ) {
    if message.count == 0 {
      let error = FeedError.invalidRequest(reason: "a batch must hold at least one request")
      return engine.refuse(engine.makeReply(to: session, id: nil), error)
    }
    let array = RequestArray(maxDepth: engine.limits.maxDepth)
    session.line.array = array
    if let long { array.keep(long.text, of: long.bytes) } else { array.keep(message) }
    arrayBudget = max(0, dispatchRequests(of: array, session, budget: arrayBudget))
    end(array, of: session)
    if session.line.isAnswering { engine.longAnswers.add(session) }
    engine.recount(session)
  }

  /// Continues the unfinished JSON-RPC batches, until the budget of the turn is used up.
  mutating func continueArrays() {
    engine.continueAnswers { session in
      guard let array = session.line.array, session.line.work == nil, session.line.isEmpty, !session.line.isStalled
      else {
        return nil
      }
      let left = dispatchRequests(of: array, session, budget: LongAnswers.part)
      end(array, of: session)
      engine.recount(session)
      return left < LongAnswers.part ? LongAnswers.part - left : nil
    }
  }

  /// Takes requests of a batch, for about `budget` units of work. Returns the unused budget.
  @discardableResult
  private mutating func dispatchRequests(of array: RequestArray, _ session: Session, budget: Int) -> Int {
    var left = budget
    while mayGoOn(session, left), let message = array.next() {
      var isTaken = true
      left -= cost(of: session) { isTaken = $0.dispatchElement(message.text, of: session) }
      if !isTaken {
        array.putBack()
        break
      }
    }
    return left
  }

  /// The cost of a request, by the bytes of its answer and of the snapshots that it made.
  private mutating func cost(of session: Session, _ request: (inout Self) -> Void) -> Int {
    let before = (session.line.array?.answers.bytes.count ?? 0) &+ session.output.count
    let share = engine.outbox.shares.bytes(of: session.peer.uid)
    request(&self)
    let after = (session.line.array?.answers.bytes.count ?? 0) &+ session.output.count
    let work = engine.outbox.shares.bytes(of: session.peer.uid) &- share
    return WorkCost.answering(bytes: max(0, after &- before)) &+ WorkCost.reading(0, bytes: work)
  }

  /// Scans a request of a JSON-RPC batch onto the tape of the open batch, and takes it.
  private mutating func dispatchElement(_ text: UnsafeRawBufferPointer, of session: Session) -> Bool {
    let message: JSONView
    var checked = RequestCheck()
    do throws(JSONError) {
      if LongTexts.isLong(text.count) {
        guard let long = try scanLong(text, of: session), let taken = take(long, of: text, session) else {
          return false
        }
        message = taken
        checked = long.check
      } else {
        message = try batches.open.scan(text)
      }
    } catch {
      assertionFailure("a request of a scanned array is valid")
      return true
    }
    return dispatchRequest(message, text, of: session, checked: checked)
  }

  private func mayGoOn(_ session: Session, _ budget: Int) -> Bool {
    budget > 0 && !session.isClosing && session.line.work == nil && session.line.takesMore
      && session.output.count <= engine.limits.maxQueue
  }

  /// Sends the answers of a JSON-RPC batch if all its requests were answered and the turn has room for them; otherwise leaves it
  /// for a later turn.
  private mutating func end(_ array: RequestArray, of session: Session) {
    if session.isClosing { return }
    if session.line.work != nil || array.isUnfinished || !session.line.isEmpty || engine.hasLongAnswers { return }
    engine.sendAnswers(of: array, to: session)
    session.line.array = nil
  }

  /// Continues long answers. Ends each JSON-RPC batch whose last request was answered.
  mutating func continueAnswers() {
    if engine.longAnswers.isEmpty { return }
    engine.longAnswers.queries.advance { $0.workOnStack() }
    engine.continueAnswers { session in
      let cost = engine.advanceAnswer(of: session)
      if let array = session.line.array { end(array, of: session) }
      return cost
    }
  }

  // MARK: The open batch

  /// Opens a batch with the daemon's own requests, if the log accepts a batch in this turn. If nothing is stored, they join the
  /// requests of clients that wait.
  mutating func openBatch() {
    arrayBudget = LongAnswers.turnBudget
    isTurnOver = false
    engine.resumeLongTexts()
    if batches.storesNothing {
      looks.begin(engine.longWork)
      for request in engine.ownWork.queue.takeSubmitted() { batches.open.addWaiting(request) }
    }
    guard batches.canAppend else { return }
    for request in engine.ownWork.queue.take(at: engine.now, nextExpiry: engine.catalog.nextExpiry) {
      batches.open.addLogged(engine.requestForLog(request))
    }
  }

  /// Gives the open batch to the log, if it has requests to store and the log accepts one more.
  mutating func appendBatch() {
    guard batches.canAppend, !batches.open.frames.isEmpty else { return }
    batches.append(at: engine.now, revision: engine.catalog.revision)
    resumeStalled()
  }

  /// Resumes the stalled connections, if feeds can be read.
  mutating func resumeIfReadable() {
    if !engine.longWork.isExclusive { resumeStalled() }
  }

  /// Records that the open batch has no room for the next request of a connection.
  private mutating func stall(_ session: Session) {
    session.line.isStalled = true
    stalled.append(session.handle)
  }

  /// Resumes the stalled connections, because the open batch has room again.
  mutating func resumeStalled() {
    if stalled.isEmpty { return }
    for handle in stalled {
      guard let session = engine.sessions[handle] else { continue }
      session.line.isStalled = false
      engine.resumeIfPossible(session)
    }
    stalled.removeAll(keepingCapacity: true)
  }
}
