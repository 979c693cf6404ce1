/// One option of a program: a long name, rarely a letter, a value or none, and the sentence of the help.
public struct OptionDescription: Equatable, Sendable {
  /// The name without the dashes.
  public var name: String
  /// The letter of the short form.
  public var letter: Character?
  public var value: OptionValue
  /// What it does, for the help; without the full stop.
  public var help: String
  /// What holds without it, for the help; nil when there is nothing to say.
  public var defaultText: String?
  /// Whether every value counts of an option that is given more than once; otherwise a second value is refused.
  public var repeats: Bool

  public init(
    _ name: String, letter: Character? = nil, value: OptionValue = .none, help: String, defaultText: String? = nil,
    repeats: Bool = false
  ) {
    self.name = name
    self.letter = letter
    self.value = value
    self.help = help
    self.defaultText = defaultText
    self.repeats = repeats
  }

  /// `-h`, `--help`
  public static let help = OptionDescription("help", letter: "h", help: "print this text and exit")
  /// `-V`, `--version`
  public static let version = OptionDescription("version", letter: "V", help: "print the version and exit")
}
