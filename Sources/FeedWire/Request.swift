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
  /// - Throws: `invalidRequest`, `invalidParams`.
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
  /// The operations of a transaction that are looked at.
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
