import Glibc

/// Environment variables, taken once, so that what depends on them can be tested with others.
public struct Environment: Sendable {
  private var values: [String: String]

  /// An environment of exactly these variables.
  public init(_ values: [String: String]) { self.values = values }

  /// The value of a variable; nil when it is not set. An empty value is a value.
  public subscript(name: String) -> String? { values[name] }

  /// The value of a variable that counts as not set when it is empty, as XDG and systemd have it.
  public func nonEmpty(_ name: String) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return value
  }

  /// The variables of this process now. Not to be called while another thread changes them.
  public static var current: Environment {
    var values: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let pair = String(cString: text)
      if let equals = pair.firstIndex(of: "=") {
        values[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
      }
      entry += 1
    }
    return Environment(values)
  }
}
