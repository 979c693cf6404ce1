import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// Standard input, for commands that read all of it before they start.
enum StandardInput {
  /// Reads available input, waiting for at least one byte. Returns 0 at the end.
  /// - Parameter deadline: in nanoseconds of ``MonotonicClock``; nil for no limit.
  static func read(into buffer: UnsafeMutableRawBufferPointer, until deadline: UInt64?) throws(Failure) -> Int {
    do throws(SystemError) {
      return try StandardStreams.read(into: buffer, until: deadline)
    } catch {
      throw error.code == ETIMEDOUT ? .client(.timedOut) : .system(error)
    }
  }

  /// The maximum bytes of a value: the greatest `maxFrame` that a daemon can be configured with.
  private static let limit = 1 << 30

  /// Reads all input and passes each item to `take`; see ``ElementReader``.
  /// - Parameter opensArrays: whether a top-level array stands for its items.
  static func readItems(
    opensArrays: Bool, until deadline: UInt64?, _ take: (ElementReader.Item) throws(Failure) -> Void
  ) throws(Failure) {
    var reader = ElementReader(limit: limit, opensArrays: opensArrays)
    while true {
      let count = try read(into: reader.room(), until: deadline)
      count == 0 ? reader.finish() : reader.didFill(count)
      while let item = reader.next() { try take(item) }
      if count == 0 { return }
    }
  }

  /// Reads the one JSON value of the input.
  /// - Parameter what: the name of the value in errors.
  static func readValue(_ what: String, until deadline: UInt64?) throws(Failure) -> String {
    var text: String?
    try readItems(opensArrays: false, until: deadline) { item throws(Failure) in
      switch item {
      case .flaw(let flaw): throw .usage("\(what): \(flaw)")
      case .element(_, let line, let column) where text != nil:
        throw .usage("\(what): line \(line), column \(column): unexpected text after the value")
      case .element(let view, _, _): text = String(decoding: view.text, as: UTF8.self)
      }
    }
    guard let text else { throw .usage("\(what): standard input is empty") }
    return text
  }
}

/// The elements of a request: arguments, or standard input.
struct ElementArguments {
  private(set) var texts: [String] = []
  /// The line and column of each element on standard input; empty for arguments.
  private var places: [(line: Int, column: Int)] = []

  /// Uses words of the command line. Throws unless each is a JSON text.
  init(_ words: [String], of command: String) throws(Failure) {
    for (place, word) in words.enumerated() {
      if let flaw = Operands.flaw(word) {
        throw .usage("\(command): element \(place + 1) is not JSON: \(flaw)\(Self.hint(word))")
      }
    }
    texts = words
  }

  /// A hint on quoting for a word that is not JSON. A bare word is usually a string without its quotes.
  private static func hint(_ word: String) -> String {
    let isBare = word.unicodeScalars.allSatisfy { $0.properties.isAlphabetic }
    return isBare ? "; quote a string twice: '\"\(word)\"'" : "; quote it for the shell: '{\"id\":1}'"
  }

  /// Reads all elements on standard input; see ``ElementReader``. Reports what is not an element, line by line.
  /// - Throws: if anything was reported, because one request has all elements or none.
  init(readingFor command: String, until deadline: UInt64?, _ console: Console) throws(Failure) {
    var (flaws, malformed) = (0, 0)
    try StandardInput.readItems(opensArrays: true, until: deadline) { item throws(Failure) in
      switch item {
      case .flaw(let flaw):
        (flaws, malformed) = (flaws + 1, malformed + (flaw.isSyntax ? 1 : 0))
        console.say("\(flaw)")
      case .element(let view, let line, let column):
        texts.append(String(decoding: view.text, as: UTF8.self))
        places.append((line, column))
      }
    }
    if flaws > 0 { try Self.refuse(command, console, malformed == flaws ? .usage : .refused) }
  }

  private static func refuse(_ command: String, _ console: Console, _ status: ExitStatus) throws(Failure) {
    console.say("\(command): nothing was changed, because one commit has all elements")
    throw .told(status)
  }

  /// Reports the elements on standard input that the daemon refused, line by line.
  /// - Throws: if there are any.
  func report(_ error: RemoteError, of command: String, _ console: Console) throws(Failure) {
    var isReported = false
    if let depth = error.limit("maxDepth") {
      let room = depth - PushTarget.longestEnvelopeDepth
      for (text, place) in zip(texts, places) where Operands.isDeeper(text, than: room) {
        console.say("\(ElementReader.Flaw.depth(line: place.line, column: place.column, room))")
        isReported = true
      }
    } else if let named = error.message.namedElement, places.indices.contains(named.index) {
      let (place, message) = (places[named.index], error.message.replacing(named.range, with: "the element"))
      console.say("line \(place.line), column \(place.column): \(message)")
      isReported = true
    }
    if isReported { try Self.refuse(command, console, .refused) }
  }
}

extension RemoteError {
  /// The value of a limit, if the request exceeded it.
  fileprivate func limit(_ name: String) -> Int? {
    guard code == Self.limitExceeded else { return nil }
    return data?.readJSON { $0.member("limit")?.string == name ? $0.member("value")?.int : nil }
  }
}

extension Invocation {
  /// Tells a person at a terminal that the command waits for input.
  func announceInput(_ what: String) {
    guard Terminal(descriptor: StandardStreams.input, environment: environment).isTerminal else { return }
    console.note("reading \(what) from the terminal; end with Ctrl-D")
  }

  /// Returns the elements from operand `first` on. With `-` or without any, reads them from standard input.
  func elements(from first: Int) throws(Failure) -> ElementArguments {
    let words = Array(operands.dropFirst(first))
    guard words.isEmpty || words == ["-"] else { return try ElementArguments(words, of: command.name) }
    announceInput("JSON elements")
    do throws(Failure) {
      return try ElementArguments(readingFor: command.name, until: end, console)
    } catch {
      if case .client(let error) = error { throw failure(error) }
      throw error
    }
  }

  /// Sends one request that changes elements, and prints its result.
  func request(
    _ method: String, _ params: consuming ParameterWriter, _ elements: ElementArguments
  ) throws(Failure) -> ExitStatus {
    params.add("elements", json: elements.texts)
    do throws(Failure) {
      return try change(method, params)
    } catch {
      if case .client(.refused(let refusal)) = error { try elements.report(refusal, of: command.name, console) }
      throw error
    }
  }
}
