import Testing

/// Reports an issue at the caller if a condition is false.
///
/// `#expect(condition)` says the same, but the compiler takes four times as long for it, because it expands a macro that takes
/// the condition apart. Use `#expect` for errors that are thrown.
///
///     expect(changes > 0, "\(seed)")
public func expect(
  _ condition: Bool, _ comment: @autoclosure () -> Comment? = nil, fileID: String = #fileID,
  filePath: String = #filePath, line: Int = #line, column: Int = #column
) {
  if condition { return }
  let location = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
  Issue.record(comment() ?? "the condition is false", sourceLocation: location)
}

/// Reports an issue at the caller that names two values if they are not equal.
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

/// Returns a value, or reports an issue at the caller and ends the test if it is nil.
///
/// `#require` says the same, but the compiler takes six times as long for it.
public func require<Value>(
  _ value: Value?, _ comment: @autoclosure () -> String = "the value is missing", fileID: String = #fileID,
  line: Int = #line
) throws -> Value {
  guard let value else { throw failure(comment(), fileID, line) }
  return value
}

/// Reports an issue at the caller and ends the test if a condition is false.
public func require(
  _ condition: Bool, _ comment: @autoclosure () -> String = "the condition is false", fileID: String = #fileID,
  line: Int = #line
) throws {
  if !condition { throw failure(comment(), fileID, line) }
}

/// Reports an issue also for callers that ignore the error.
private func failure(_ reason: String, _ fileID: String, _ line: Int) -> TestFailure {
  let location = SourceLocation(fileID: fileID, filePath: fileID, line: line, column: 1)
  Issue.record(Comment(rawValue: reason), sourceLocation: location)
  return TestFailure("\(fileID):\(line): \(reason)")
}
