import FeedJSON
import TestSupport
import Testing

/// Texts with a few changed bytes: the scanner agrees with the reference, and reads nothing outside the text.
@Suite struct ScannerMutationTests {
  @Test(arguments: 0..<8)
  func agreesWithTheReference(_ part: UInt64) throws {
    var accepted = 0
    for seed in (part * 150)..<(part * 150 + 150) {
      var random = SeededRandom(seed: seed)
      var generator = TextGenerator(seed: seed)
      let text = generator.text(size: 8)
      for _ in 0..<12 {
        let mutated = Mutation.of(text, &random)
        let expected = ReferenceReader.read(mutated)
        let failure = scanFailure(mutated)
        #expect((failure == nil) == (expected != nil), "seed \(seed): \(mutated)")
        guard failure == nil, let expected else { continue }
        accepted += 1
        #expect(try withJSON(mutated) { ReferenceValue($0) } == expected, "seed \(seed)")
      }
    }
    #expect(accepted > 50, "the changes leave enough texts valid to be worth comparing")
  }

  @Test func randomBytesDoNotTrap() {
    for seed in 0..<400 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let noise = (0..<Int(random.next() % 64)).map { _ in
        random.next() & 3 == 0 ? UInt8(truncatingIfNeeded: random.next()) : Mutation.bytes[Int(random.next() % 24)]
      }
      #expect((scanFailure(noise) == nil) == (ReferenceReader.read(noise) != nil), "seed \(seed): \(noise)")
    }
  }
}
