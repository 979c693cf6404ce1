import FeedChange
import FeedJSON

/// A JSON-RPC 2.0 request. Valid while the bytes and the tape of its frame are ("Messages" in `Protocol/README.md`).
public struct Request {
  /// A string or a number; nil for a notification, which is executed without a response.
  public let id: JSONView?
  /// The name of the method, a string.
  public let method: JSONView
  /// The object of named parameters; nil if it is absent.
  public let params: JSONView?

  /// Reads a request.
  /// - Parameter found: set to the valid id, also if an error is thrown, so that the error can be sent as a response.
  public init(reading message: JSONView, id found: inout JSONView?) throws(FeedError) {
    guard message.kind == .object else { throw .invalidRequest(reason: "a request must be an object") }
    var version: JSONView?
    var method: JSONView?
    var params: JSONView?
    var id: JSONView?
    for member in message.members {
      if member.key.stringEquals("jsonrpc") {
        version = member.value
      } else if member.key.stringEquals("method") {
        method = member.value
      } else if member.key.stringEquals("params") {
        params = member.value
      } else if member.key.stringEquals("id") {
        id = member.value
      }
    }
    if let id {
      guard id.kind == .string || id.kind == .number else {
        throw .invalidRequest(reason: "\"id\" must be a string or a number; omit it for a notification")
      }
    }
    found = id
    guard let version, version.stringEquals("2.0") else { throw .invalidRequest(reason: "\"jsonrpc\" must be \"2.0\"") }
    guard let method, method.kind == .string else {
      throw .invalidRequest(reason: "\"method\" must be a string that names a method")
    }
    if let params, params.kind != .object {
      throw .invalidParams(member: "params", reason: "must be an object of named parameters")
    }
    self.init(id: id, method: method, params: params)
  }

  fileprivate init(id: JSONView?, method: JSONView, params: JSONView?) {
    self.id = id
    self.method = method
    self.params = params
  }
}

/// The form of the last `update` of one element on a connection. Requests of the same form differ in `id` and the element only,
/// and need not be decoded again.
public struct UpdateForm: ~Copyable {
  private var form = JSONForm()
  private var places: (id: JSONForm.Place?, method: JSONForm.Place, params: JSONForm.Place)?
  /// The updates of other forms since the last one of this form.
  private var others = 0

  /// At least one update of so many is recorded.
  private static let mostOthers = 64

  public init() {}

  /// Scans a request of this form; nil if it has another one.
  @inline(__always)
  public mutating func scan(
    _ text: UnsafeRawBufferPointer, after kept: Int, _ scanner: inout JSONScanner
  ) -> (message: JSONView, request: Request)? {
    guard let places, let message = scanner.scan(text, after: kept, like: &form) else { return nil }
    others = 0
    let request = Request(
      id: places.id.map { JSONForm.view(at: $0, in: message) }, method: JSONForm.view(at: places.method, in: message),
      params: JSONForm.view(at: places.params, in: message))
    return (message, request)
  }

  /// Follows an `update` of another form. Every other one would be useless to a client that alternates between many forms, so the
  /// more there are, the fewer are recorded.
  public mutating func follow(_ message: JSONView, _ request: Request) {
    others += 1
    let isRecorded = others & (others - 1) == 0 || others % Self.mostOthers == 0
    guard isRecorded, message.count == (request.id == nil ? 3 : 4), let params = request.params, params.count == 2,
      params.member("feed") != nil, let element = params.member("element")
    else { return }
    form.record(message, value: element, integer: request.id)
    let place = { JSONForm.Place(of: $0, in: message, without: element) }
    places = (request.id.map(place), place(request.method), place(params))
  }
}

extension Request {
  private static let lookedAt = 4096

  /// Whether the request may need more space in the stored state, or is a transaction of so many operations that they are not looked
  /// at. O(1), except for a short transaction that only deletes.
  public func mayGrow(_ method: Method) -> Bool {
    guard method == .transaction else { return method.mayGrow }
    guard let operations = params?.member("ops"), operations.kind == .array, operations.count <= Self.lookedAt else {
      return true
    }
    for operation in operations.elements {
      guard let name = operation.member("method"), let method = Method(name), !method.mayGrow else { return true }
    }
    return false
  }
}

/// The framing of the stream: a 4-byte big-endian length N and N bytes of JSON ("Connecting and framing" in `Protocol/README.md`).
public enum Frame {
  /// The number of bytes of the length before each payload.
  public static let headerLength = 4

  /// The result of looking for a frame at the start of a stream.
  public enum Step {
    /// Part of a frame. `total` is the length of the whole frame including the header; nil until the header is complete.
    case incomplete(total: Int?)
    /// A complete frame; its payload, without the header.
    case complete(UnsafeRawBufferPointer)
    /// The length is 0 or exceeds the limit. The rest of the stream cannot be parsed.
    case badLength(Int)
  }

  /// Returns the length of a payload from the header at the start of `bytes`.
  @inlinable public static func payloadLength(_ bytes: UnsafeRawBufferPointer) -> Int {
    Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
  }

  /// Parses the first frame of `bytes`. The length is checked before the payload arrives. O(1).
  @inlinable public static func first(in bytes: UnsafeRawBufferPointer, maxFrame: Int) -> Step {
    guard bytes.count >= headerLength else { return .incomplete(total: nil) }
    let length = payloadLength(bytes)
    guard length >= 1, length <= maxFrame else { return .badLength(length) }
    let total = headerLength &+ length
    guard bytes.count >= total else { return .incomplete(total: total) }
    return .complete(UnsafeRawBufferPointer(rebasing: bytes[headerLength..<total]))
  }
}

extension ByteBuffer {
  /// Reserves the header of a frame, which `endFrame` fills in. Returns the offset of the frame.
  @inlinable public mutating func beginFrame() -> Int {
    let start = count
    appendUInt32BigEndian(0)
    return start
  }

  /// Writes the header of the frame at offset `start`. Returns the length of its payload in bytes.
  @inlinable @discardableResult public mutating func endFrame(at start: Int) -> Int {
    let length = count &- start &- Frame.headerLength
    assert(start >= 0 && length >= 0, "no frame was begun at offset \(start)")
    overwriteUInt32BigEndian(at: start, UInt32(truncatingIfNeeded: length))
    return length
  }
}

/// Reads the named parameters of a request. Errors name the parameter and the expected value.
///
///     let parameters = Parameters(object: request.params)
///     let feed = try parameters.string("feed", "the name of a feed")
///     let count = try parameters.count("count", default: 100)
///
/// All errors are `invalidParams` ("Errors" in `Protocol/README.md`). Reading a parameter is O(members).
public struct Parameters {
  /// The object of the parameters; nil if the request has none.
  public let object: JSONView?
  /// Bit n is set if a name may have n bytes, so that most absent parameters are found to be absent without a search.
  @usableFromInline let lengths: UInt64

  /// Creates a reader of the members of `object`. O(members).
  public init(object: JSONView?) {
    self.object = object
    if object?.values(named: "feed", "element") != nil {
      lengths = Self.bit(ofLength: 4) | Self.bit(ofLength: 7)
    } else {
      lengths = object.map(Self.lengths) ?? 0
    }
  }

  /// The values of `feed` and `element` if there are no other parameters, as in most updates; nil if there are, or if they are in
  /// another order. O(1).
  @inlinable @inline(__always)
  public var feedAndElement: (JSONView, JSONView)? { object?.values(named: "feed", "element") }

  /// Returns a parameter of any kind; nil if it is absent.
  @inlinable @inline(__always)
  public func member(_ name: StaticString) -> JSONView? {
    guard lengths & Self.bit(ofLength: name.utf8CodeUnitCount) != 0 else { return nil }
    return object?.member(name)
  }

  private static func lengths(of object: JSONView) -> UInt64 {
    var lengths: UInt64 = 0
    for member in object.members {
      // An escaped name is longer than what it stands for.
      lengths |= member.key.hasEscapes ? .max : bit(ofLength: member.key.text.count - 2)
    }
    return lengths
  }

  /// The bit of a length; all lengths from 63 on share one.
  @inlinable @inline(__always) static func bit(ofLength length: Int) -> UInt64 { 1 &<< UInt64(min(length, 63)) }

  /// Returns a parameter of any kind.
  /// - Parameter what: the expected value in words, for the error.
  public func required(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    guard let value = member(name) else { throw Self.refuse(name, "is missing: give \(what)") }
    return value
  }

  /// Returns a string. Escapes are decoded.
  public func string(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).string else { throw Self.refuse(name, "must be a string: \(what)") }
    return string
  }

  /// Returns the name of a feed or bin. A string that is too long for one is not decoded.
  public func name(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).truncatedName else {
      throw Self.refuse(name, "must be a string: \(what)")
    }
    return string
  }

  /// Throws if two parameters that exclude each other are both present.
  public func refuseBoth(_ one: StaticString, _ other: StaticString) throws(FeedError) {
    if member(other) != nil && member(one) != nil { throw Self.refuse(other, Self.exclusion(of: "\(one)")) }
  }

  /// The reason to refuse a parameter that is given together with another one.
  public static func exclusion(of other: String) -> String { "cannot be combined with \(other); give one of them" }

  public func array(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    let value = try required(name, what)
    guard value.kind == .array else { throw Self.refuse(name, "must be \(what)") }
    return value
  }

  /// Returns an integer; `fallback` if it is absent, or an error if there is no fallback.
  public func integer(_ name: StaticString, default fallback: Int? = nil) throws(FeedError) -> Int {
    guard let value = member(name) else {
      if let fallback { return fallback }
      throw Self.refuse(name, "is missing: give an integer")
    }
    guard let number = value.int else { throw Self.refuse(name, "must be an integer") }
    return number
  }

  /// Returns a non-negative integer; `fallback` if it is absent.
  public func count(_ name: StaticString, default fallback: Int) throws(FeedError) -> Int {
    guard let value = member(name) else { return fallback }
    guard let number = value.int, number >= 0 else { throw Self.refuse(name, "must be a non-negative integer") }
    return number
  }

  /// Returns a boolean; `fallback` if it is absent.
  public func bool(_ name: StaticString, default fallback: Bool) throws(FeedError) -> Bool {
    guard let value = member(name) else { return fallback }
    guard let bool = value.bool else { throw Self.refuse(name, "must be true or false") }
    return bool
  }

  /// Returns the integers of an index path `[section, row]`. They can be negative or too large.
  public func path(_ name: StaticString) throws(FeedError) -> (section: Int, row: Int) {
    guard let path = try required(name, "an index path [section, row]").path else {
      throw Self.refuse(name, "must be an index path [section, row] of integers")
    }
    return path
  }

  /// Creates the error of a parameter; `reason` follows its name.
  public static func refuse(_ name: StaticString, _ reason: String) -> FeedError {
    .invalidParams(member: "\(name)", reason: reason)
  }
}

extension JSONView {
  /// The maximum length of the JSON text of a name of 257 characters, in bytes: each one is an escape. Names of feeds and
  /// bins are shorter.
  private static var longestName: Int { 2 + 6 * 257 }

  /// The string; nil for other kinds. A string that is too long for any name is truncated and not decoded, so that refusing
  /// it does not take time and memory for its whole length.
  public var truncatedName: String? {
    guard kind == .string, text.count > Self.longestName else { return string }
    return String(decoding: text.dropFirst().prefix(Self.longestName), as: UTF8.self) + "…"
  }

  /// The integers of `[section, row]`; nil for other values.
  public var path: (section: Int, row: Int)? {
    guard kind == .array, count == 2, let section = element(at: 0)?.int, let row = element(at: 1)?.int else {
      return nil
    }
    return (section, row)
  }
}

extension FeedError {
  /// The error as that of an operation of a transaction: with its index in `ops`, and with the feed of its parameters.
  public func ofOperation(at index: Int, _ params: JSONView?) -> FeedError {
    .operationFailed(index: index, naming(params?.member("feed")?.truncatedName))
  }
}
