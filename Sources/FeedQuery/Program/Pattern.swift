import Synchronization

/// The regular expression of one `match` or `search` in a filter.
///
/// A text that is no I-Regexp matches nothing, as RFC 9535, sections 2.4.6 and 2.4.7, say.
final class Pattern: Sendable {
  let isWhole: Bool
  /// The pattern is a literal: what it was compiled to, nil when it is no I-Regexp.
  private let constant: RegexpMatcher?
  private let isConstant: Bool
  /// The pattern of the last evaluation, when it comes from the value.
  private let last = Mutex<Last?>(nil)

  private struct Last {
    var text: [UInt8]
    var regexp: RegexpMatcher?
  }

  /// A pattern that is read from the value each time.
  init(isWhole: Bool) {
    self.isWhole = isWhole
    constant = nil
    isConstant = false
  }

  /// A pattern that stands in the query, at `offset`. Throws when it is an I-Regexp that exceeds a limit.
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
      throw QueryError(offset: offset, message: "in the regular expression, \(error.message)")
    }
  }

  /// Whether `value` matches; `pattern` is looked at only if it is not constant. Nil when `work` runs out.
  func matches(_ value: UnsafeRawBufferPointer, pattern: UnsafeRawBufferPointer, work: inout Int) -> Bool? {
    guard let regexp = isConstant ? constant : compiled(pattern, work: &work) else { return false }
    return regexp.matches(value, isWhole: isWhole, work: &work)
  }

  /// As `matches(_:pattern:work:)`, but the work is the same each time: that of a matcher that knows nothing yet, which is
  /// bounded by the sizes of the value and of the expression.
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
