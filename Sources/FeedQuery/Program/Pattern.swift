import Synchronization

/// The regular expression of a `match` or `search` in a filter.
///
/// A text that is not an I-Regexp matches nothing (RFC 9535, sections 2.4.6 and 2.4.7). Can be shared between threads.
final class Pattern: Sendable {
  /// Whether the whole string must match (`match`), rather than a part of it (`search`).
  let isWhole: Bool
  /// The compiled literal; nil if it is not an I-Regexp or `isConstant` is false.
  private let constant: RegexpMatcher?
  /// Whether the pattern is a literal of the query.
  private let isConstant: Bool
  /// The pattern of the last evaluation, if it is read from the value.
  private let last = Mutex<Last?>(nil)

  /// The memory of the compiled pattern in bytes, without cached states. Depends only on the syntax.
  var size: Int { 1024 + (isConstant ? constant?.size ?? 0 : Self.largestConstant) }
  /// The memory of a pattern that is read from the value, which is kept until the next evaluation.
  private static let largestConstant = 16 << 10

  private struct Last {
    var text: [UInt8]
    var regexp: RegexpMatcher?
  }

  /// Creates a pattern that is read from the value at each evaluation.
  init(isWhole: Bool) {
    self.isWhole = isWhole
    constant = nil
    isConstant = false
  }

  /// Creates a pattern from a literal at `offset` in the query.
  ///
  /// - Throws: if the literal is an I-Regexp that exceeds a limit.
  init(isWhole: Bool, constant text: [UInt8], at offset: Int) throws(QueryError) {
    self.isWhole = isWhole
    isConstant = true
    do {
      constant = try RegexpMatcher(parsing: String(decoding: text, as: UTF8.self))
    } catch {
      guard case .limit(let error) = error else {
        constant = nil
        return
      }
      throw QueryError(offset: offset, message: "regular expression: \(error.message)")
    }
  }

  /// An upper bound for the work of `count` matches over values with `bytes` bytes in total, of expressions with
  /// `patternBytes` bytes in total.
  func mostWork(_ count: Double, over bytes: Double, patternBytes: Double) -> Double {
    // Every evaluation reads both texts, also that of a literal.
    let reading = count + (bytes + patternBytes) / 16
    if isConstant { return reading + count + bytes * (constant?.mostWorkOverByte ?? 0) }
    // Each match may compile another expression.
    let compiling = QueryLimits.regexpClassWork + 2 * QueryLimits.regexpInstructions
    return reading + patternBytes + count * Double(compiling / 8) + bytes
      * RegexpMatcher.mostWorkOverByte(QueryLimits.regexpInstructions)
  }

  /// Whether `value` matches; nil if `work` runs out. `pattern` is ignored if the pattern is a literal.
  ///
  /// - Parameter pace: lets a long match stop now and then. Nobody else may then use the query.
  func matches(
    _ value: UnsafeRawBufferPointer, pattern: UnsafeRawBufferPointer, work: inout Int,
    _ pace: Unmanaged<EvaluationPace>?
  ) -> Bool? {
    guard let regexp = isConstant ? constant : compiled(pattern, work: &work) else { return false }
    return regexp.matches(value, isWhole: isWhole, work: &work, pace)
  }

  /// Like `matches(_:pattern:work:)`, but charges the same work each time, whatever is cached: it depends only on the sizes of
  /// the value and of the expression.
  func matches(
    _ value: UnsafeRawBufferPointer, pattern: UnsafeRawBufferPointer, repeatableWork work: inout Int
  ) -> Bool? {
    var unlimited = Int.max
    let regexp = isConstant ? constant : compiled(pattern, work: &unlimited)
    if !isConstant { work &-= pattern.count &+ (regexp?.cost ?? 0) }
    guard let regexp else { return false }
    work &-= regexp.work(over: value.count)
    guard work >= 0 else { return nil }
    return regexp.matches(value, isWhole: isWhole, work: &unlimited)
  }

  /// The matcher of `pattern`; nil if it is not an I-Regexp. The last one is cached. Charges the work of compiling.
  private func compiled(_ pattern: UnsafeRawBufferPointer, work: inout Int) -> RegexpMatcher? {
    last.withLock { last in
      if let last, last.text.elementsEqual(pattern) { return last.regexp }
      let regexp = try? RegexpMatcher(parsing: String(decoding: pattern, as: UTF8.self))
      work &-= pattern.count &+ (regexp?.cost ?? 0)
      last = Last(text: Array(pattern), regexp: regexp)
      return regexp
    }
  }
}
