import FeedEngine
import Testing

@testable import FeedServer

@Suite("Slots of connections")
struct ConnectionTableTests {
  @Test func areFoundByNumberAndReusedOnlyAfterTheTurn() {
    var table = ConnectionTable()
    let first = table.open(10, ConnectionID(rawValue: 0))
    let far = table.open(11, ConnectionID(rawValue: 1000))
    #expect(table.count == 2)
    #expect(table[ConnectionID(rawValue: 0)] == first)
    #expect(table[ConnectionID(rawValue: 1000)] == far)
    #expect(table[ConnectionID(rawValue: 1)] == nil)
    #expect(table[ConnectionID(rawValue: 99_999)] == nil)

    table.close(first)
    #expect(!first.isOpen)
    #expect(table.count == 1)
    #expect(table[ConnectionID(rawValue: 0)] == nil)
    let second = table.open(10, ConnectionID(rawValue: 0))
    #expect(second != first, "an event of this turn may still name the first")
    table.recycle()
    let third = table.open(12, ConnectionID(rawValue: 2))
    #expect(third == first)
    #expect(third.pointee.flags == [])
    #expect(Set(table.open) == [far, second, third])
  }
}
