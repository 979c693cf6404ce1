import TestSupport
import Testing

@testable import FeedEngine

/// The queue in which users take turns.
struct UserQueueTests {
  private final class Element {
    let uid: UInt32
    let number: Int
    var place = 0

    init(_ uid: UInt32, _ number: Int) { (self.uid, self.number) = (uid, number) }
  }

  @Test func usersTakeTurns() {
    var queue = UserQueue<Element>()
    for number in 0..<5 { _ = queue.append(Element(1, number), of: 1) }
    for number in 5..<7 { _ = queue.append(Element(2, number), of: 2) }
    _ = queue.append(Element(3, 7), of: 3)
    var taken: [Int] = []
    while let element = queue.takeFirst() {
      taken.append(element.number)
      if element.number == 1 { _ = queue.append(Element(3, 8), of: 3) }
    }
    expectEqual(taken, [0, 5, 7, 1, 6, 8, 2, 3, 4])
    expect(queue.isEmpty && queue.takeFirst() == nil)
  }

  /// Equals a queue that searches, after each of many random operations.
  @Test(arguments: 1...TestEffort.count(5, long: 100)) func equalsASlowQueue(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var queue = UserQueue<Element>()
    var elements: [Element] = []
    var turns: [UInt32] = []
    for number in 0..<3000 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1,
        2 where number % 600 < 300:
        let element = Element(UInt32.random(in: 1...4, using: &random), number)
        element.place = queue.append(element, of: element.uid)
        elements.append(element)
        if !turns.contains(element.uid) { turns.append(element.uid) }
      case 3 where !elements.isEmpty:
        let element = elements.remove(at: Int.random(in: 0..<elements.count, using: &random))
        queue.remove(at: element.place, of: element.uid)
      default:
        while let uid = turns.first, !elements.contains(where: { $0.uid == uid }) { turns.removeFirst() }
        let index = elements.firstIndex { $0.uid == turns.first }
        let expected = index.map { elements.remove(at: $0) }
        expect(queue.takeFirst() === expected)
        if expected != nil { turns.append(turns.removeFirst()) }
      }
      queue.checkInvariants { $0.uid == $1 && $0.place == $2 }
      expectEqual(queue.count, elements.count)
    }
  }
}
