import Foundation
import TestSupport
import Testing

@testable import FeedGroup

/// The upload of an image of three chunks, to servers that answer what the tests say.
struct ImageUploadTests {
  private final class Servers: GroupTransport {
    let maxPayload = 1024 + 256
    /// The ends of the reply subjects of what was sent and is not answered.
    var asked: [String] = []

    func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String? {
      asked.append(String((reply ?? "").dropFirst("i.image.".count)))
      return nil
    }

    func follow(_ subject: String) {}
  }

  private static let second: UInt64 = 1_000_000_000
  private let servers = Servers()
  private let directory: TemporaryDirectory
  private var upload: ImageUpload

  init() throws {
    directory = try TemporaryDirectory()
    let path = directory.file("image")
    try Data(repeating: 7, count: 3000).write(to: URL(fileURLWithPath: path))
    let settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: "h", member: "m", version: "1", pid: 1, timeout: 1)
    upload = ImageUpload(
      WrittenImage(path: path, bytes: 3000, position: 9, from: 10, isShared: true, note: ""), as: "image", settings,
      epoch: "e", replicas: 1, inbox: "i", id: "x", servers, now: 0)
  }

  /// Answers messages. Returns the outcome of the last answer.
  private mutating func answer(_ names: String..., at time: UInt64 = 0) -> ImageUpload.Outcome {
    var outcome = ImageUpload.Outcome.underWay
    for name in names {
      servers.asked.removeAll { $0 == name }
      outcome = upload.receive(JSONObject("{\"seq\":1}"), Substring(name), now: time)
    }
    return outcome
  }

  @Test mutating func onlyTheAnswersToTheUploadCount() {
    defer { upload.close() }
    expectEqual(servers.asked, ["x.bucket"])
    var outcomes = [answer("y.bucket")]
    expectEqual(servers.asked, ["x.bucket"])
    outcomes.append(answer("x.bucket"))
    expectEqual(servers.asked, ["x.0", "x.1", "x.2"])
    outcomes.append(answer("y.0", "y.1", "y.2", "x.0", "x.1"))
    expectEqual(servers.asked, ["x.2"])
    outcomes.append(answer("x.2"))
    expectEqual(servers.asked, ["x.description"])
    expectEqual(outcomes, [.underWay, .underWay, .underWay, .underWay])
    guard case .complete(let image, let first) = answer("x.description") else {
      Issue.record("the upload is not complete")
      return
    }
    expect((image.size, image.chunks, image.position, first) == (3000, 3, 9, 1))
  }

  @Test mutating func anUploadOfAMemberThatStoodStillFails() {
    defer { upload.close() }
    _ = answer("x.bucket")
    let before = answer("x.0", "x.1", at: 5 * Self.second)
    let after = answer("x.2", at: 11 * Self.second)
    expectEqual(before, .underWay)
    expectEqual(after, .failed("the servers did not answer in time"))
    expect(servers.asked.isEmpty)
  }
}
