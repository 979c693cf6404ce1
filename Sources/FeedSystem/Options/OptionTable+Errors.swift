extension OptionTable {
  /// An option at the end of the line whose value is missing.
  func missingValue(_ option: OptionDescription?) -> UsageError {
    guard let option else { return UsageError("an option's value is missing") }
    return UsageError("--\(option.name): a value is missing, expected \(option.value.expectation)")
  }

  /// A word that getopt_long refused: an unknown option, an ambiguous one, or a value where none belongs.
  func refused(_ word: String, _ option: OptionDescription?, letter: Int32) -> UsageError {
    if let option { return UsageError("--\(option.name) takes no value") }
    if letter > 0, let scalar = UnicodeScalar(UInt32(bitPattern: letter)) {
      return UsageError("unknown option -\(scalar)")
    }
    let name = String(word.prefix { $0 != "=" }.drop { $0 == "-" })
    let candidates = options.map(\.name).filter { $0.hasPrefix(name) }
    if candidates.count > 1 {
      return UsageError("--\(name) is short for more than one option: \(Self.list(candidates))")
    }
    let close = options.map(\.name).filter { Self.distance($0, name) <= 2 }
    return UsageError("unknown option --\(name)" + (close.isEmpty ? "" : ", did you mean \(Self.list(close))?"))
  }

  private static func list(_ names: [String]) -> String { names.map { "--\($0)" }.joined(separator: ", ") }

  /// The number of letters to insert, delete or change between two names (Levenshtein). O(n·m), for error messages.
  private static func distance(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a.utf8), Array(b.utf8.prefix(64)))
    var previous = Array(0...b.count)
    for (i, x) in a.enumerated() {
      var row = [i + 1]
      for (j, y) in b.enumerated() {
        row.append(min(previous[j] + (x == y ? 0 : 1), previous[j + 1] + 1, row[j] + 1))
      }
      previous = row
    }
    return previous[b.count]
  }
}
