import FeedJSON
import FeedSystem
import Glibc

/// The thread of a ``Client``: sends the requests of all tasks over one connection and delivers the answers.
///
/// Invariant: each waiting task is in `waiting` until exactly one of answer, failure and cancellation removes it.
final class ClientWorker: Sendable {
  typealias Answer = Result<[UInt8], any Error>

  private struct Request {
    var ticket: UInt64
    var method: String
    var params: [UInt8]
  }

  private struct State {
    var nextTicket: UInt64 = 0
    /// Requests that were not sent yet, oldest first.
    var queue: [Request] = []
    var waiting: [UInt64: CheckedContinuation<Answer, Never>] = [:]
    var isStopped = false
  }

  private let path: String
  private let name: String
  private let thread = WorkerThread("client")
  private let state = Guarded(State())

  init(path: String, name: String) { (self.path, self.name) = (path, name) }

  /// Sends a request and returns the JSON text of its result.
  func call(_ method: String, _ params: [UInt8]) async throws -> [UInt8] {
    let ticket = state.withLock { state in
      state.nextTicket += 1
      return state.nextTicket
    }
    let received = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isRefused = state.withLock { state in
          guard !state.isStopped, !Task.isCancelled else { return true }
          state.waiting[ticket] = waiter
          state.queue.append(Request(ticket: ticket, method: method, params: params))
          return false
        }
        if isRefused { return waiter.resume(returning: .failure(CancellationError())) }
        start()
      }
    } onCancel: {
      answer(ticket, .failure(CancellationError()))
    }
    #if THREAD_SANITIZER
      // Shows the sanitizer that the work of the thread is done before the task resumes.
      state.withLock { _ in }
    #endif
    return try received.get()
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    thread.wake()
  }

  private func answer(_ ticket: UInt64, _ answer: Answer) {
    let waiter = state.withLock { state in
      state.queue.removeAll { $0.ticket == ticket }
      return state.waiting.removeValue(forKey: ticket)
    }
    waiter?.resume(returning: answer)
  }

  private func failAll(_ error: any Error) {
    let waiting = state.withLock { state in
      defer { (state.waiting, state.queue) = ([:], []) }
      return state.waiting
    }
    for waiter in waiting.values { waiter.resume(returning: .failure(error)) }
  }

  private func start() {
    do throws(ClientError) { try thread.wake { self.run() } } catch { failAll(error) }
  }

  private func run() {
    var connection: Connection?
    // The tickets of the requests that were sent, by their ids.
    var sent: [Int: UInt64] = [:]
    while true {
      let (requests, isStopped) = state.withLock { state in
        defer { state.queue = [] }
        return (state.queue, state.isStopped)
      }
      if isStopped { return failAll(CancellationError()) }
      do throws(ClientError) {
        // Reopens a connection that was lost while it was idle.
        if sent.isEmpty, let idle = connection, isLost(idle) { connection = nil }
        if !requests.isEmpty, connection == nil { connection = try open() }
        for request in requests { if let connection { send(request, over: connection, &sent) } }
        try connection?.flush()
        while let message = try connection?.next() { process(message, &sent) }
        try wait(connection)
      } catch {
        // Sent requests may have been executed. The caller decides whether to repeat them.
        for ticket in sent.values { answer(ticket, .failure(error)) }
        for request in requests { answer(request.ticket, .failure(error)) }
        (connection, sent) = (nil, [:])
      }
    }
  }

  /// Whether the daemon has closed an idle connection.
  private func isLost(_ connection: Connection) -> Bool {
    do throws(ClientError) {
      try connection.fill()
      while try connection.next() != nil {}
      return false
    } catch {
      return true
    }
  }

  private func open() throws(ClientError) -> Connection {
    let connection = try Connection.open(path: path, timeout: .seconds(5))
    _ = try connection.hello(client: name, deadline: MonotonicClock.now &+ 30_000_000_000)
    return connection
  }

  private func send(_ request: Request, over connection: Connection, _ sent: inout [Int: UInt64]) {
    do throws(ClientError) {
      let id = try connection.sendIfAccepted(request.method) { params in
        request.params.withUnsafeBytes { params.append($0) }
      }
      sent[id] = request.ticket
    } catch {
      answer(request.ticket, .failure(error))
    }
  }

  private func process(_ message: Message, _ sent: inout [Int: UInt64]) {
    guard case .response(let id, let result) = message else { return }
    // The daemon cannot name a request that it could not read, such as one that nests too deeply. It answers in order,
    // so it is the oldest one.
    let answered = id == 0 ? sent.keys.min() : id
    guard let answered, let ticket = sent.removeValue(forKey: answered) else { return }
    switch result {
    case .success(let view): answer(ticket, .success(view.compactText))
    case .failure(let error): answer(ticket, .failure(ClientError.refused(error)))
    }
  }

  private func wait(_ connection: Connection?) throws(ClientError) {
    try thread.wait(for: connection?.descriptor, connection?.interest ?? .readable)
    try connection?.fill()
  }
}

/// A thread of the client that starts when it is first needed, and the wake-up that it waits on.
final class WorkerThread: Sendable {
  private let name: String
  /// Nil if the system refused an event descriptor.
  private let wakeUp = try? WakeUp()
  private let isStarted = Guarded(false)

  init(_ name: String) { self.name = name }

  /// Starts the thread, unless it was started before, and wakes it.
  /// - Throws: if the thread cannot be started; the next call tries again.
  func wake(running body: @escaping @Sendable () -> Void) throws(ClientError) {
    let mustStart = isStarted.withLock { isStarted in
      defer { isStarted = true }
      return !isStarted
    }
    if mustStart {
      do throws(SystemError) {
        guard wakeUp != nil else { throw SystemError(code: EMFILE, operation: "create an event descriptor") }
        try Thread(name) { body() }
      } catch {
        isStarted.withLock { $0 = false }
        throw .system(error)
      }
    }
    wake()
  }

  /// Wakes the thread, if it was started.
  func wake() { wakeUp?.signal() }

  /// Waits on the thread itself until it is woken, a descriptor is ready, or the deadline has passed.
  func wait(for descriptor: Int32?, _ interest: Readiness = .readable, until deadline: UInt64? = nil)
    throws(ClientError)
  {
    guard let wakeUp else { return }
    var list = WaitList()
    list.add(wakeUp.descriptor, .readable)
    if let descriptor { list.add(descriptor, interest) }
    do throws(SystemError) { _ = try list.wait(until: deadline) } catch { throw .system(error) }
    wakeUp.clear()
  }
}
