import TestSupport
import Testing

@testable import FeedModel

struct BlockListTests {
  @Test(arguments: 0..<TestEffort.count(2, long: 50)) func equalsAnArray(_ seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var (list, array) = (BlockList<Int>(), [Int]())
    for round in 0..<12 {
      for number in 0..<Int.random(in: 0...2 * BlockList<Int>.blockSize, using: &random) {
        list.append(number)
        array.append(number)
      }
      for _ in 0..<min(array.count, Int.random(in: 0...BlockList<Int>.blockSize, using: &random)) {
        expectEqual(list.popLast(), array.popLast())
      }
      if round == 8, list.removeLastBlock() {
        array.removeLast(array.count - list.count)
      } else if round == 8 {
        array = []
      }
      list.checkInvariants()
      expect(list.count == array.count && list.isEmpty == array.isEmpty)
      expect(list.elementsEqual(array))
      expect(list.reversed().elementsEqual(array.reversed()))
      let start = Int.random(in: 0...array.count, using: &random)
      expect(list[start...].elementsEqual(array[start...]))
    }
    while list.popLast() != nil {}
    expect(list.isEmpty && list.count == 0)
  }

  @Test func freesOneBlockAtATime() {
    var list = BlockList<Int>()
    let size = BlockList<Int>.blockSize
    for number in 0..<2 * size + 5 { list.append(number) }
    var counts: [Int] = []
    while list.removeLastBlock() { counts.append(list.count) }
    expectEqual(counts, [2 * size, size])
    expect(list.isEmpty)
  }
}
