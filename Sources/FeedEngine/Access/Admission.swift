import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Checks that apply to a new request once, when it arrives. Requests of the log passed them, or were accepted by a version
/// that did not have them, so replay does not repeat them.
enum Admission {
  /// Members of `define` that belong to the request, not to the definition.
  private static let requestMembers = ["replace", "animation"]

  /// Refuses unknown members in the definitions of a request.
  ///
  /// - Throws: `invalidParams` with the path of the member, for an operation of a transaction with its number.
  static func checkDefinitions(of method: Method, _ params: JSONView?) throws(FeedError) {
    switch method {
    case .define: try checkDefinition(params)
    case .transaction: try checkOperations(params?.member("ops"))
    default: return
    }
  }

  private static func checkOperations(_ operations: JSONView?) throws(FeedError) {
    guard let operations, operations.kind == .array else { return }
    for (place, operation) in operations.elements.enumerated() {
      guard let method = operation.member("method"), method.stringEquals("define") else { continue }
      let params = operation.member("params")
      do throws(FeedError) {
        try checkDefinition(params)
      } catch {
        throw .operationFailed(index: place, error.naming(params?.member("feed")?.truncatedName))
      }
    }
  }

  private static func checkDefinition(_ params: JSONView?) throws(FeedError) {
    guard let params else { return }
    do throws(KnownMembers.Unknown) {
      try KnownMembers.check(definition: params, others: requestMembers, repeats: .allowed)
    } catch {
      throw .invalidParams(member: error.path, reason: "is an unknown member; \(error.advice ?? "leave it out")")
    }
  }
}
