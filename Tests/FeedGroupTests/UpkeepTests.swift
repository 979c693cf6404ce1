import FeedModel
import TestSupport
import Testing

@testable import FeedGroup

/// When a member writes and publishes images.
struct UpkeepTests {
  private static let second: UInt64 = 1_000_000_000

  /// The work of a member that has read one message with a batch.
  private func makeUpkeep() throws -> (Upkeep, MemberTable) {
    let settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: "h", member: "m", version: "1", pid: 1, timeout: 1)
    var (upkeep, table) = (Upkeep(settings, position: 0, now: 0), MemberTable())
    table.skip(1)
    upkeep.didRead(bytes: 10, now: 0)
    return (upkeep, table)
  }

  /// Whether an image is due, and published; nil if none is.
  private func due(_ upkeep: inout Upkeep, _ table: MemberTable, at time: UInt64) -> Bool? {
    let mark = upkeep.dueImage(table, canPublish: true, isCaughtUp: true, now: time * Self.second)
    guard let mark, case .image(_, let isShared) = upkeep.takePurpose(mark) else { return nil }
    return isShared
  }

  @Test(arguments: [false, true]) func anImageThatIsAskedForDuringAnotherOneFollows(isShared: Bool) throws {
    let (made, table) = try makeUpkeep()
    var upkeep = made
    let first = upkeep.requestImage(table, isShared: isShared)
    expect(first != nil)
    for _ in 0..<2 {
      let second = upkeep.requestImage(table, isShared: true)
      expect(second == nil)
    }
    let isEarly = upkeep.takeRequest()
    expect(!isEarly)
    upkeep.didWriteImage(1, bytes: 100, isShared: isShared, now: 0)
    if isShared { upkeep.didPublishImage() }
    // Once.
    let requests = (0..<2).map { _ in upkeep.takeRequest() }
    expectEqual(requests, [true, false])
    let next = upkeep.requestImage(table, isShared: true)
    expect(next != nil)
  }

  @Test func anImageOfThisHostThatCannotBeWrittenIsTriedMoreAndMoreSeldom() throws {
    var (upkeep, table) = try makeUpkeep()
    var (time, pauses): (UInt64, [UInt64]) = (0, [])
    for _ in 0..<9 {
      let start = time
      while true {
        let isShared = due(&upkeep, table, at: time)
        if isShared == nil {
          time += 1
          continue
        }
        // The other members need no image because this host cannot write one.
        expectEqual(isShared, false)
        break
      }
      pauses.append(time - start)
      upkeep.didFailToWriteImage(now: time * Self.second)
    }
    expectEqual(pauses, [1, 10, 20, 40, 80, 160, 320, 640, 640])
    // One that is written ends this.
    while due(&upkeep, table, at: time) == nil { time += 1 }
    upkeep.didWriteImage(1, bytes: 100, isShared: false, now: time * Self.second)
    table.skip(2)
    upkeep.didRead(bytes: 10, now: time * Self.second)
    let start = time
    while due(&upkeep, table, at: time) == nil { time += 1 }
    expectEqual(time - start, 1)
  }

  @Test func anImageForAllThatCannotBeWrittenIsTriedAgain() throws {
    let (made, table) = try makeUpkeep()
    var upkeep = made
    _ = upkeep.requestImage(table, isShared: true)
    upkeep.didFailToWriteImage(now: 0)
    let early = due(&upkeep, table, at: 9)
    let late = due(&upkeep, table, at: 10)
    expect(early == nil && late == true)
  }
}

/// What members do if their digests differ.
struct DivergenceTests {
  private static let second: UInt64 = 1_000_000_000
  private var table = MemberTable()

  init() {
    for (place, value) in ["right", "wrong", "right"].enumerated() {
      let host = "h\(place)"
      receive(.join, 1, UInt64(place), "{\"member\":\"\(host)\",\"host\":\"\(host)\"}")
      receive(.digest, 2, UInt64(place), "{\"mark\":2,\"digest\":\"\(value)\"}")
    }
  }

  private mutating func receive(_ kind: GroupMessage.Kind, _ number: UInt64, _ origin: UInt64, _ text: String) {
    let message = GroupMessage(kind, origin: origin, number: number, time: 0)
    Array(text.utf8).withUnsafeBytes { bytes in
      _ = table.receive(message, bytes, sequence: table.position + 1, time: 100)
    }
  }

  private mutating func receiveImage(_ place: UInt64, number: UInt64) {
    receive(
      .image, number, place,
      "{\"position\":\(table.position),\"from\":1,\"bytes\":1,\"name\":\"image\",\"id\":\"a\",\"chunks\":1,\"first\":1}"
    )
  }

  private func upkeep(of host: String, _ digest: String) throws -> Upkeep {
    let settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: host, member: host, version: "1", pid: 1, timeout: 1)
    var upkeep = Upkeep(settings, position: 0, now: 0)
    upkeep.didDigest(2, digest, now: 0)
    return upkeep
  }

  @Test mutating func aMemberThatDiffersWaitsForAnImageOfAnotherOne() throws {
    var wrong = try upkeep(of: "h1", "wrong")
    expect(wrong.isDivergent(table))
    let isEarly = wrong.divergence(table, rank: 1, 0) != nil
    receiveImage(1, number: 3)
    let isOwn = wrong.divergence(table, rank: 1, 0) != nil
    receiveImage(2, number: 3)
    let isLate = wrong.divergence(table, rank: 1, 0) != nil
    expectEqual([isEarly, isOwn, isLate], [false, false, true])
  }

  @Test mutating func anImageIsThatOfAMemberNotOfItsHost() throws {
    // Another member of the host of the one that differs has the digest of most.
    receive(.join, 1, 3, "{\"member\":\"other\",\"host\":\"h1\"}")
    receive(.digest, 2, 3, "{\"mark\":2,\"digest\":\"right\"}")
    for (place, isRight) in [(UInt64(1), false), (3, true)] {
      receiveImage(place, number: 3)
      let image = try require(MemberTable(text: table.text)?.image)
      expectEqual(table.digests?.isRight(image, since: 2), isRight)
    }
  }

  @Test func aMemberThatDiffersWaitsForSomeTime() throws {
    var wrong = try upkeep(of: "h1", "wrong")
    let found = [39, 40].map { wrong.divergence(table, rank: 1, $0 * Self.second) != nil }
    expectEqual(found, [false, true])
  }

  /// Marks follow each other faster than the patience, and a fourth member was killed and is listed yet.
  @Test mutating func aBusyGroupRepairsAMemberThatDiffers() throws {
    receive(.join, 1, 3, "{\"member\":\"h3\",\"host\":\"h3\"}")
    for repairs in [false, true] {
      var wrong = try upkeep(of: "h1", "wrong")
      var group = self
      var lostAt: UInt64?
      for (count, time) in stride(from: UInt64(0), to: 60, by: 4).enumerated() where lostAt == nil {
        let mark = group.table.position
        _ = wrong.didMark(mark, group.table, isCaughtUp: true)
        wrong.didDigest(mark, "wrong", now: time * Self.second)
        // The member that differs is the first one.
        for (place, value) in [(UInt64(1), "wrong"), (0, "right"), (2, "right")] {
          group.receive(.digest, UInt64(3 + count), place, "{\"mark\":\(mark),\"digest\":\"\(value)\"}")
          if wrong.divergence(group.table, rank: 1, time * Self.second) != nil, lostAt == nil { lostAt = time }
        }
        if repairs && count == 2 { group.receiveImage(2, number: 6) }
        if wrong.divergence(group.table, rank: 1, (time + 1) * Self.second) != nil, lostAt == nil { lostAt = time + 1 }
      }
      expectEqual(lostAt, repairs ? 9 : 40)
    }
  }

  @Test mutating func anotherMemberPublishesAnImageOnce() throws {
    var right = try upkeep(of: "h2", "right")
    expect(!right.isDivergent(table))
    func due(_ upkeep: inout Upkeep, at time: UInt64) -> Bool {
      let text = upkeep.divergence(table, rank: 1, time * Self.second)
      expectEqual(text, nil)
      return upkeep.dueImage(table, canPublish: true, isCaughtUp: true, now: time * Self.second) != nil
    }
    let early = due(&right, at: 0)
    let late = due(&right, at: 8)
    expectEqual([early, late], [false, true])
    right.didPublishImage()
    receiveImage(2, number: 3)
    let again = (9..<60).contains { due(&right, at: $0) }
    expect(!again)
  }
}

struct StateDigestTests {
  /// The digest after a collection `c` was defined and got rows, one a commit.
  /// - Parameter last: more members of the last row.
  private func digest(_ definition: String, rows: Int, rules: Int, last: String = "") throws -> String? {
    let catalog = Catalog(limits: Limits(), seed: 1)
    catalog.begin(at: Instant(nanoseconds: 1))
    try withJSON(definition) {
      try catalog.define(FeedDefinition(parsing: $0, limits: catalog.limits), replace: false)
    }
    catalog.finish()
    for number in 0..<rows {
      catalog.begin(at: Instant(nanoseconds: UInt64(number + 2)))
      let collection = try catalog.collection(named: "c")
      let more = number == rows - 1 ? last : ""
      try withJSON(#"{"id":\#(number),"p":\#(number % 3)\#(more)}"#) { try collection.update($0, in: catalog.commit) }
      catalog.finish()
    }
    var digest = StateDigest(catalog.makeImage(), mark: 1, rules: rules)
    return digest.step(for: .max / 2)
  }

  private static let bins = #"[{"name":"a","filter":"@.p==0"},{"name":"b","filter":"@.p==1"},{"name":"rest"}]"#
  private static let definitions = [
    #"{"feed":"c","kind":"collection"}"#, #"{"feed":"c","kind":"collection","bins":\#(bins)}"#,
  ]

  /// Members of different versions compare their digests, and one with another digest than most begins again. So these must not
  /// change for a log that members of other versions can follow.
  @Test func allVersionsComputeTheSame() throws {
    for (definition, rows, expected) in [
      (0, 0, "8a1fd4c43d4634c9"), (0, 3, "57919e2a45a0c1e3"), (0, 600, "8009862992b069b8"), (1, 3, "c941340535642ea0"),
      (1, 900, "3b39bb1128669226"),
    ] { expectEqual(try digest(Self.definitions[definition], rows: rows, rules: 4), expected) }
  }

  @Test(arguments: [(0, 1), (0, 256), (0, 257), (0, 600), (1, 1), (1, 2), (1, 3), (1, 900)])
  func everyRowCounts(definition: Int, rows: Int) throws {
    let text = Self.definitions[definition]
    let digest = try digest(text, rows: rows, rules: ExecutionRules.current)
    try expectEqual(self.digest(text, rows: rows, rules: ExecutionRules.current), digest)
    try expect(self.digest(text, rows: rows, rules: ExecutionRules.current, last: #","v":1"#) != digest)
  }
}
