/// Formats a number with its noun: `1 row`, `2 rows`.
/// - Parameter plural: the noun for other numbers than one; by default with an `s`.
package func counted(_ count: some BinaryInteger, _ noun: String, plural: String? = nil) -> String {
  "\(count) \(count == 1 ? noun : plural ?? noun + "s")"
}
