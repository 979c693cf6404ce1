import FeedChange
import TestSupport
import Testing

struct SectionAdditionTests {
  /// Names of one and two bytes a character, up to some that are not held in place.
  private static let names = (0...40).flatMap { count in
    ["n", "é"].map { String(repeating: $0, count: count) }
  }

  @Test(arguments: names) func keepsTheName(name: String) {
    let addition = SectionAddition(at: 7, name: name)
    expectEqual(addition.at, 7)
    expectEqual(addition.name, name)
    expectEqual(addition.nameLength, name.utf8.count)
    expectEqual(addition.withNameBytes { Array($0) }, Array(name.utf8))
    expectEqual(Array(name.utf8).withUnsafeBytes { SectionAddition(at: 7, name: $0) }, addition)
  }

  @Test func isEqualOnlyToTheSameSection() {
    let additions = Self.names.flatMap { name in [1, 2].map { SectionAddition(at: $0, name: name) } }
    // The empty name is listed twice.
    expectEqual(Set(additions).count, additions.count - 2)
  }
}
