/// What a command line said. Every value in it has passed the check of its ``OptionValue``.
public struct ParsedOptions: Equatable, Sendable {
  /// The words that are neither options nor their values, in order.
  public internal(set) var operands: [String] = []
  private var values: [String: [String]] = [:]

  /// Whether the option was given, with or without a value.
  public func contains(_ name: String) -> Bool { values[name] != nil }

  /// The value given; the last one of an option that repeats; nil when the option was not given.
  public func text(_ name: String) -> String? { values[name]?.last }

  /// Every value given, in order, for options that may be repeated.
  public func texts(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option of kind ``OptionValue/integer(_:)``.
  public func integer(_ name: String) -> Int? { text(name).flatMap { Int($0) } }

  /// The value of an option of kind ``OptionValue/bytes(_:)``.
  public func bytes(_ name: String) -> Int? { text(name).flatMap(ByteCount.parse) }

  /// The value of an option of kind ``OptionValue/duration(_:)``.
  public func duration(_ name: String) -> Duration? { text(name).flatMap(TimeSpan.parse) }

  public var wantsHelp: Bool { contains("help") }
  public var wantsVersion: Bool { contains("version") }

  mutating func record(_ name: String, _ value: String) { values[name, default: []].append(value) }
}
