import CLinux
import Glibc
import Synchronization

extension OptionTable {
  /// getopt_long keeps its state in global variables.
  private static let parsing = Mutex(())
  /// Marks a negative number, which getopt_long would take for letters; no argument can contain it at its start by chance
  /// and mean anything.
  private static let shield = "\u{1}"
  /// Options are numbered from here, beyond every letter.
  private static let firstNumber: Int32 = 256

  /// Reads the words after the program's name. Long options may be shortened while they stay unique; `--` ends the
  /// options; a word like `-3` is an operand. An option takes one value unless it
  /// repeats; one without a value may stand again.
  /// - Parameter stopsAtOperand: whether the first operand ends the options, as before a command's own; otherwise they may
  ///   stand anywhere.
  /// - Throws: the first thing that is wrong.
  public func parse(_ arguments: [String], stopsAtOperand: Bool = false) throws(UsageError) -> ParsedOptions {
    let options = options
    let words = [program] + arguments.map { Self.isNegativeNumber($0) ? Self.shield + $0 : $0 }
    let argv = words.map { strdup($0) } + [nil]
    let names = options.map { strdup($0.name) }
    defer { for pointer in argv + names { free(pointer) } }
    var table = zip(options, names).enumerated().map { index, pair in
      option(
        name: UnsafePointer(pair.1), has_arg: pair.0.value == .none ? no_argument : required_argument,
        flag: nil, val: Self.firstNumber + Int32(index))
    }
    table.append(option())
    let letters = (stopsAtOperand ? "+:" : ":") + options.map(Self.shortForm).joined()

    // getopt_long moves the pointers of its argument vector, so the copy to free is another one.
    var vector = argv
    var parsed = ParsedOptions()
    let failure = Self.parsing.withLock { _ -> UsageError? in
      var restart: Int32 = 1
      while true {
        let step = clinux_next_option(Int32(words.count), &vector, letters, table, restart)
        restart = 0
        do throws(UsageError) {
          guard try take(step, vector, options, &parsed) else { return nil }
        } catch {
          return error
        }
      }
    }
    if let failure { throw failure }
    return parsed
  }

  /// An option in getopt's string of letters: its letter, and a colon when it takes a value.
  private static func shortForm(_ option: OptionDescription) -> String {
    guard let letter = option.letter else { return "" }
    return option.value == .none ? "\(letter)" : "\(letter):"
  }

  /// Takes one step's outcome in; false after the last.
  private func take(
    _ step: clinux_option_step, _ vector: [UnsafeMutablePointer<CChar>?], _ options: [OptionDescription],
    _ parsed: inout ParsedOptions
  ) throws(UsageError) -> Bool {
    func word(_ index: Int32) -> String {
      vector.indices.contains(Int(index)) ? Self.text(vector[Int(index)]) : ""
    }
    func named(_ number: Int32) -> OptionDescription? {
      let index = Int(number - Self.firstNumber)
      if options.indices.contains(index) { return options[index] }
      return options.first { $0.letter?.unicodeScalars.first?.value == UInt32(bitPattern: number) }
    }
    switch step.result {
    case -1:
      parsed.operands = vector[Int(step.next)...].dropLast().map { Self.text($0) }
      return false
    case Int32(UInt8(ascii: ":")):
      throw missingValue(named(step.offender))
    case Int32(UInt8(ascii: "?")):
      throw refused(word(step.next - 1), named(step.offender), letter: step.offender)
    default:
      guard let option = named(step.result) else { return true }
      let value = Self.text(step.value)
      guard option.value == .none || option.value.accepts(value) else {
        throw UsageError("--\(option.name) '\(value)': expected \(option.value.expectation)")
      }
      guard option.value == .none || option.repeats || !parsed.contains(option.name) else {
        throw UsageError("--\(option.name) is given twice and takes one value")
      }
      parsed.record(option.name, value)
      return true
    }
  }

  private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
    guard let pointer else { return "" }
    let text = String(cString: pointer)
    return text.hasPrefix(shield) ? String(text.dropFirst()) : text
  }

  private static func isNegativeNumber(_ word: String) -> Bool {
    word.utf8.count > 1 && word.utf8.first == UInt8(ascii: "-") && Double(word) != nil
      && word.utf8.dropFirst().first.map { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") } == true
  }
}
