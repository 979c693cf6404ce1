import FeedJSON
import FeedModel
import TestSupport
import Testing

@testable import FeedGroup

struct GroupMessageTests {
  private let message = GroupMessage(.batch, origin: 7, number: 3, time: 1000, deadline: 2000, isLast: false)

  private func encoded(_ payload: [UInt8] = Array("requests".utf8)) -> [UInt8] {
    payload.withUnsafeBytes { message.encoded($0) }
  }

  /// Names of hosts and feeds may have any characters.
  @Test func textsAreWrittenAsJSONStrings() {
    let text = "line\nend\t\u{1}\u{7f}\"\\/é😀"
    expectEqual(JSONObject("{\"host\":\(text.quotedAsJSON)}")?.string("host"), text)
  }

  @Test func isParsedAsItWasEncoded() throws {
    let bytes = encoded()
    expectEqual(bytes.count, GroupMessage.byteCount + 8)
    try bytes.withUnsafeBytes { bytes in
      let (found, payload) = try GroupMessage.parse(bytes)
      expectEqual(found, message)
      expectEqual(Array(payload), Array("requests".utf8))
    }
  }

  @Test func anyChangedByteIsNoticed() {
    let sound = encoded()
    for place in sound.indices {
      var bytes = sound
      bytes[place] ^= 0x10
      #expect(throws: GroupMessage.Flaw.foreign) { try bytes.withUnsafeBytes { _ = try GroupMessage.parse($0) } }
    }
    for count in 0..<sound.count {
      #expect(throws: GroupMessage.Flaw.foreign) {
        try sound.prefix(count).withUnsafeBytes { _ = try GroupMessage.parse($0) }
      }
    }
  }

  @Test func hashesAndBase64AreThoseOfTheStandards() {
    func hash(_ text: String) -> String {
      var hash = SHA256()
      // In parts, so that blocks are filled by several of them.
      for byte in text.utf8 { withUnsafeBytes(of: byte) { hash.update($0) } }
      return hash.finish().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    expectEqual(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    expectEqual(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    expect(
      hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    expectEqual(Base64.encode(Array("image".utf8)), "aW1hZ2U=")
    for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar"] {
      expectEqual(Base64.decode(Base64.encode(Array(text.utf8))), Array(text.utf8))
    }
    expectEqual(Base64.decode("a+/b"), Base64.decode("a-_b"))
    expect(Base64.decode("a b") == nil)
  }
}

struct MemberTableTests {
  private var table = MemberTable()

  private mutating func receive(
    _ kind: GroupMessage.Kind, _ number: UInt64, origin: UInt64 = 1, _ text: String = "", time: UInt64 = 0,
    deadline: UInt64 = 0, isLast: Bool = true
  ) -> MemberTable.Effect {
    let message = GroupMessage(kind, origin: origin, number: number, time: time, deadline: deadline, isLast: isLast)
    return Array(text.utf8).withUnsafeBytes {
      table.receive(message, $0, sequence: table.position + 1, time: 100)
    }
  }

  private mutating func join(_ origin: UInt64, as member: String = "m1") {
    guard case .joined = receive(.join, 1, origin: origin, "{\"member\":\"\(member)\",\"host\":\"h\"}") else {
      Issue.record("the member did not join")
      return
    }
  }

  private func skip(_ effect: MemberTable.Effect) -> MemberTable.Skip? {
    if case .none(let reason) = effect { reason } else { nil }
  }

  @Test mutating func messagesOfAnOriginHaveTheirEffectOnceAndInOrder() {
    expectEqual(skip(receive(.batch, 2)), .unknownOrigin)
    join(1)
    expectEqual(skip(receive(.batch, 3)), .gap)
    expect(skip(receive(.batch, 2)) == nil)
    expectEqual(skip(receive(.batch, 2)), .duplicate)
    expect(skip(receive(.batch, 3)) == nil)
    expectEqual(skip(receive(.join, 1, "{\"member\":\"m1\",\"host\":\"h\"}")), .duplicate)
  }

  @Test mutating func anotherOriginOfAMemberEndsTheFormerOne() {
    join(1)
    expect(skip(receive(.batch, 2, origin: 1)) == nil)
    join(2)
    expectEqual(skip(receive(.batch, 3, origin: 1)), .unknownOrigin)
    expect(skip(receive(.batch, 2, origin: 2)) == nil)
    expectEqual(table.members.count, 1)
  }

  @Test mutating func aMessageThatIsStoredTooLateCanBeSentAgain() {
    join(1)
    expectEqual(skip(receive(.batch, 2, deadline: 99)), .late)
    expect(skip(receive(.batch, 2, deadline: 101)) == nil)
  }

  @Test mutating func theMomentOfBatchesNeverDecreases() {
    join(1)
    var moments: [UInt64] = []
    for (number, time) in [(2, 50), (3, 40), (4, 60)] as [(UInt64, UInt64)] {
      if case .batch(_, let moment) = receive(.batch, number, time: time) { moments.append(moment) }
    }
    expectEqual(moments, [50, 50, 60])
  }

  @Test mutating func partsOfABatchAreJoinedAlsoAfterAnImage() throws {
    join(1)
    join(2, as: "m2")
    expect(skip(receive(.batch, 2, "one,", isLast: false)) == nil)
    let image = table.text
    expectEqual(table.firstNeeded, 3)
    // Another member's batch between the parts.
    expect(skip(receive(.batch, 2, origin: 2, "other")) == nil)
    guard case .batch(let bytes?, _) = receive(.batch, 3, "two") else {
      Issue.record("the batch is not complete")
      return
    }
    expectEqual(bytes, Array("one,two".utf8))

    // A member that begins with the image reads the stream from the first part on.
    var other = try require(MemberTable(text: image))
    expectEqual(other.needed, 3)
    let first = GroupMessage(.batch, origin: 1, number: 2, time: 0, isLast: false)
    _ = Array("one,".utf8).withUnsafeBytes { other.receive(first, $0, sequence: 3, time: 100) }
    let last = GroupMessage(.batch, origin: 1, number: 3, time: 0)
    let effect = Array("two".utf8).withUnsafeBytes { other.receive(last, $0, sequence: 5, time: 100) }
    guard case .batch(let again?, _) = effect else {
      Issue.record("the batch is not complete after the image")
      return
    }
    expectEqual(again, bytes)
  }

  @Test mutating func theTextOfATableIsTheTable() throws {
    join(1)
    join(2, as: "m-2")
    _ = receive(.configured, 2, origin: 1, "{\"feeds\":{\"inbox\":17}}")
    _ = receive(.batch, 3, origin: 1, time: 70)
    table.rules = 3
    let again = try require(MemberTable(text: table.text))
    expectEqual(again.members, table.members)
    expect((again.position, again.moment) == (table.position, table.moment))
    expectEqual(again.text, table.text)
    expect(MemberTable(text: "{}") == nil)
  }

  @Test mutating func feedsThatOtherMembersConfigure() {
    join(1)
    join(2, as: "m2")
    _ = receive(.configured, 2, origin: 1, "{\"feeds\":{\"inbox\":17}}")
    expect(table.configured(besides: "m2") == ["inbox"] && table.configured(besides: "m1") == [])
  }

  private static func image(_ name: String, _ id: String, _ position: Int, first: Int = 1) -> String {
    "{\"position\":\(position),\"from\":\(position),\"bytes\":1,\"name\":\"\(name)\",\"id\":\"\(id)\",\"chunks\":1,\"first\":\(first)}"
  }

  /// The object of a name is replaced, so the former image is the one of the other name.
  @Test mutating func membersThatPublishImagesAtOnceLeaveTheOneBefore() {
    join(1)
    join(2, as: "m2")
    _ = receive(.image, 2, origin: 1, Self.image("image", "a", 2))
    _ = receive(.image, 3, origin: 1, Self.image("image2", "b", 3))
    expect((table.image?.id, table.formerImage?.id) == ("b", "a"))
    _ = receive(.image, 2, origin: 2, Self.image("image2", "c", 3))
    expect((table.image?.id, table.formerImage?.id) == ("c", "a"))
    _ = receive(.image, 4, origin: 1, Self.image("image", "d", 5))
    expect((table.image?.id, table.formerImage?.id) == ("d", "c"))
  }

  /// The bucket describes the one whose description came last there.
  @Test(arguments: [10, 12]) mutating func whatIsNeededOfImagesThatArePublishedAtOnceIsKept(position: Int) {
    join(1)
    join(2, as: "m2")
    _ = receive(.image, 2, origin: 1, Self.image("image", "a", 2, first: 2))
    _ = receive(.image, 3, origin: 1, Self.image("image2", "b", 11, first: 6))
    _ = receive(.image, 2, origin: 2, Self.image("image2", "c", position, first: 5))
    expect(table.image?.id == (position > 11 ? "c" : "b"))
    expect((table.image?.from, table.image?.first) == (UInt64(min(position, 11)), 5))
    expect((table.formerImage?.from, table.formerImage?.first) == (2, 2))
    _ = receive(.image, 4, origin: 1, Self.image("image", "d", 20, first: 8))
    expect((table.image?.from, table.image?.first) == (20, 8))
    expect((table.formerImage?.from, table.formerImage?.first) == (UInt64(min(position, 11)), 5))
    // One that was long on its way replaces the former one.
    _ = receive(.image, 3, origin: 2, Self.image("image2", "e", 9, first: 4))
    expect((table.image?.id, table.formerImage?.from, table.formerImage?.first) == ("d", 9, 4))
  }

  @Test func anImageThatWasReplacedInTheBucketIsNotWhole() throws {
    let settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: "h", member: "m", version: "1", pid: 1, timeout: 1)
    func former(_ name: String) throws -> String? {
      let table = try require(
        MemberTable(
          text: "{\"position\":9,\"moment\":0,\"image\":\(Self.image("image2", "c", 3)),\"formerImage\":"
            + "\(Self.image(name, "b", 3)),\"members\":[]}"))
      let subjects =
        ["b", "c"].map { PublishedImage.chunkSubject(settings, $0) }
        + PublishedImage.names.map { PublishedImage.subject(settings, $0) }
      let text = "{\"state\":{\"subjects\":{\(subjects.map { "\"\($0)\":1" }.joined(separator: ","))}}}"
      let held = HeldFrames(copying: Array(text.utf8), ByteCounter())
      let input = GroupInput(
        subject: "bucket", reply: nil, bytes: held.frames, status: nil, lastConsumer: nil, stalled: nil, owner: held)
      var upkeep = Upkeep(settings, position: 9, now: 0)
      return upkeep.checkBucket(input, table, rank: 0, now: 0)?.id
    }
    try expectEqual(former("image"), "b")
    // Older versions have such tables.
    try expect(former("image2") == nil)
  }

  @Test func anImageThatCannotBePublishedIsWrittenAgainMoreAndMoreSeldom() throws {
    let settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: "h", member: "m", version: "1", pid: 1, timeout: 1)
    let second: UInt64 = 1_000_000_000
    let table = MemberTable()
    var upkeep = Upkeep(settings, position: 0, now: 0)
    /// Seconds from a failure to the next try.
    func pause(after time: UInt64) -> UInt64 {
      upkeep.didFailImage(now: time * second)
      var now = time
      // Not at all while the log is unreachable.
      let isBlind = upkeep.dueImage(table, canPublish: false, isCaughtUp: true, now: (now + 10_000) * second) == nil
      while upkeep.dueImage(table, canPublish: true, isCaughtUp: true, now: now * second) == nil { now += 1 }
      return isBlind ? now - time : 0
    }
    _ = upkeep.requestImage(table, isShared: true)
    let pauses = (0..<8).map { pause(after: $0 * 1000) }
    expectEqual(pauses, [10, 20, 40, 80, 160, 320, 640, 640])
    upkeep.didPublishImage()
    _ = upkeep.requestImage(table, isShared: true)
    let next = pause(after: 9000)
    expectEqual(next, 10)
  }

  @Test(arguments: [0, 1, 2, 3, 200]) func anImageHasTheLastRecords(count: Int) throws {
    var records = LogRecords()
    for place in 0..<count { _ = records.add(UInt64(place) + 1, UInt32(place) &* 0x9e37_79b9) }
    let again = JSONObject(records.text).flatMap(LogRecords.init)
    expect(again == nil || count > 0)
    guard let again else { return }
    expectEqual(again.mark, records.mark)
    expectEqual(Array(again.newest()), Array(records.newest(129)))
    // Versions before had the last one only.
    let last = try require(records.newest(1).first)
    let old = JSONObject("{\"sequence\":\(count),\"checksum\":\(last.checksum),\"chain\":\(last.chain)}")
    expectEqual(old.flatMap(LogRecords.init).map { Array($0.newest()) }, [last])
  }

  @Test func aMessageThatIsReadAgainMustBeTheSame() {
    var records = LogRecords()
    let answers = [(1, 1), (2, 2), (3, 3), (2, 2), (2, 7)].map { records.add($0, $1) }
    expectEqual(answers, [true, true, true, true, false])
    expectEqual(records.mark?.position, 3)
  }

  @Test mutating func twoHostsThatDefineAFeedDifferentlyConflict() {
    join(1)
    _ = receive(.configured, 2, origin: 1, "{\"feeds\":{\"inbox\":17,\"tabs\":3}}")
    expect(table.conflict(of: ["inbox": 17], of: "m2") == nil)
    expect(table.conflict(of: ["inbox": 18], of: "m1") == nil)
    let found = table.conflict(of: ["inbox": 18], of: "m2")
    expectEqual(found?.feed, "inbox")
    expectEqual(found?.host, "h")
    _ = receive(.leave, 3, origin: 1)
    expect(table.conflict(of: ["inbox": 18], of: "m2") == nil)
  }
}

struct StreamIdentityTests {
  /// A stream keeps the rules of the version that created it, so that its members can be updated.
  @Test func streamsOfKnownRulesCanBeFollowed() throws {
    for rules in 2...ExecutionRules.current {
      let identity = StreamIdentity(epoch: "e", limits: ["maxFrame": 1], rules: rules)
      try expectEqual(StreamIdentity(identity.text, stream: "s"), identity)
    }
    for rules in [1, ExecutionRules.current + 1] {
      let identity = StreamIdentity(epoch: "e", limits: [:], rules: rules)
      #expect(throws: GroupError.self) { try StreamIdentity(identity.text, stream: "s") }
    }
  }
}
