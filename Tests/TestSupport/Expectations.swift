import Testing

/// Reports an issue at the caller if two values are not equal.
///
/// `#expect(value == expected)` says the same, but the compiler takes four times as long for it, 8 milliseconds each, because it
/// expands a macro and chooses from many overloads of `==`. Use `#expect` for other conditions.
///
///     expectEqual(outcome.lines, ["a", "b"])
///     try expectEqual(client.run("define", "f").code, 0, "\(definition)")
public func expectEqual<Value: Equatable>(
  _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil, fileID: String = #fileID,
  filePath: String = #filePath, line: Int = #line, column: Int = #column
) {
  guard value != expected else { return }
  let note = comment().map { ": \($0)" } ?? ""
  Issue.record(
    "\(String(reflecting: value)) is not \(String(reflecting: expected))\(note)",
    sourceLocation: SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column))
}
