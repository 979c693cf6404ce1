/// What a query may not exceed, all of it checked while its text is read.
public enum QueryLimits {
  /// Bytes of the text of a query, a filter or a regular expression.
  public static let textLength = 1 << 20
  /// Parentheses, filters and function calls inside one another.
  public static let nesting = 64
  /// Groups of a regular expression inside one another.
  public static let regexpNesting = 100
  /// Instructions of a regular expression after its repetitions have been written out.
  public static let regexpInstructions = 4_096
  /// Work spent on telling the character classes of a regular expression apart.
  static let regexpClassWork = 500_000
  /// Bytes of states that a regular expression keeps, for each of its two ways of matching.
  static let regexpCache = 1 << 20
  /// The largest magnitude of an index or a slice bound: the I-JSON range of exact integers (RFC 9535, section 2.1).
  public static let largestInteger = 9_007_199_254_740_991
}
