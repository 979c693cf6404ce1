import FeedSystem
import Glibc

/// The newest image in the object store bucket of a group, in the layout of NATS's object stores: chunks on
/// `$O.bucket.C.id` and one message that describes them on `$O.bucket.M.name`.
struct PublishedImage: Equatable {
  /// The name of the object.
  static let name = "image"
  static let chunkBytes = 128 << 10

  let id: String
  let size: Int
  let chunks: Int
  /// SHA-256 of the bytes, as `SHA-256=` and base64.
  let digest: String
  let epoch: String
  let position: UInt64
  let from: UInt64

  static func chunkSubject(_ settings: GroupSettings, _ id: String) -> String { "$O.\(settings.bucket).C.\(id)" }
  static func subject(_ settings: GroupSettings) -> String {
    "$O.\(settings.bucket).M.\(Base64.encode(Array(name.utf8)))"
  }

  func text(_ settings: GroupSettings, time: String) -> String {
    "{\"name\":\"\(Self.name)\",\"bucket\":\"\(settings.bucket)\",\"nuid\":\"\(id)\",\"size\":\(size),\"chunks\":\(chunks),"
      + "\"mtime\":\"\(time)\",\"digest\":\"\(digest)\",\"options\":{\"max_chunk_size\":\(Self.chunkBytes)},"
      + "\"metadata\":{\"epoch\":\"\(epoch)\",\"position\":\"\(position)\",\"from\":\"\(from)\"}}"
  }

  init(id: String, size: Int, chunks: Int, digest: String, epoch: String, position: UInt64, from: UInt64) {
    (self.id, self.size, self.chunks, self.digest) = (id, size, chunks, digest)
    (self.epoch, self.position, self.from) = (epoch, position, from)
  }

  /// Returns nil if the description is not that of a group's image.
  init?(_ facts: JSONObject) {
    guard facts.bool("deleted") != true, let id = facts.string("nuid"), let size = facts.int("size"),
      let chunks = facts.int("chunks"), let digest = facts.string("digest"), let ours = facts.object("metadata"),
      let epoch = ours.string("epoch"), let position = ours.string("position").flatMap({ UInt64($0) }),
      let from = ours.string("from").flatMap({ UInt64($0) })
    else { return nil }
    self.init(id: id, size: size, chunks: chunks, digest: digest, epoch: epoch, position: position, from: from)
  }
}

/// Publishes an image: asks for the bucket, sends the chunks a few at a time, then their description. Used by the thread of the
/// log, which passes the servers' answers.
struct ImageUpload {
  private enum Stage { case bucket, chunks, description }

  enum Outcome: Equatable {
    case underWay
    /// Complete: the place of the first chunk in the bucket's stream.
    case complete(firstChunk: UInt64)
    case failed(String)
  }

  /// Chunks that are not acknowledged yet.
  private static let window = 8
  private static let patience: UInt64 = 5_000_000_000

  let image: WrittenImage
  private let settings: GroupSettings
  private let epoch: String
  private let inbox: String
  private let id: String
  private let file: Int32
  private let transport: any GroupTransport
  private var stage = Stage.bucket
  private var hash = SHA256()
  private var sent = 0
  private var acknowledged = 0
  private var bytes = 0
  private var isWholeRead = false
  private var firstChunk: UInt64 = .max
  private var heardAt: UInt64

  init(
    _ image: WrittenImage, _ settings: GroupSettings, epoch: String, replicas: Int, inbox: String, id: String,
    _ transport: any GroupTransport, now: UInt64
  ) {
    self.image = image
    self.settings = settings
    self.epoch = epoch
    self.inbox = inbox
    self.id = id
    self.transport = transport
    heardAt = now
    file = open(image.path, O_RDONLY | O_CLOEXEC)
    let text = JetStream.bucketConfiguration(settings, replicas: replicas)
    _ = transport.publish(
      JetStream.createStream(settings.bucketStream), reply: "\(inbox).image.bucket", identity: nil, rollup: nil,
      Array(text.utf8))
  }

  /// Ends the upload, complete or not.
  func close() { if file >= 0 { Glibc.close(file) } }

  func isLate(_ now: UInt64) -> Bool { now &- heardAt > Self.patience }

  /// Handles the answer to a message whose reply subject ended with `name`.
  mutating func receive(_ answer: JSONObject?, _ name: Substring, now: UInt64) -> Outcome {
    guard file >= 0 else { return .failed("cannot read \(image.path)") }
    heardAt = now
    let failure = JetStream.failure(answer)
    switch stage {
    case .bucket:
      guard name == "bucket" else { return .underWay }
      if let failure, failure.error != JetStream.Failure.streamNameInUse { return .failed(failure.description) }
      stage = .chunks
      return sendChunks()
    case .chunks:
      guard Int(name) != nil else { return .underWay }
      if let failure { return .failed(failure.description) }
      firstChunk = min(firstChunk, answer?.unsigned("seq") ?? .max)
      acknowledged += 1
      return sendChunks()
    case .description:
      guard name == "description" else { return .underWay }
      if let failure { return .failed(failure.description) }
      return .complete(firstChunk: firstChunk)
    }
  }

  private mutating func sendChunks() -> Outcome {
    while sent - acknowledged < Self.window && !isWholeRead {
      var count = 0
      let chunk = [UInt8](unsafeUninitializedCapacity: PublishedImage.chunkBytes) { space, filled in
        count = read(file, space.baseAddress, space.count)
        filled = max(count, 0)
      }
      if count < 0 { return .failed("cannot read \(image.path)") }
      if count == 0 {
        isWholeRead = true
        break
      }
      chunk.withUnsafeBytes { hash.update($0) }
      bytes += count
      let failure = transport.publish(
        PublishedImage.chunkSubject(settings, id), reply: "\(inbox).image.\(sent)", identity: nil, rollup: nil, chunk)
      if let failure { return .failed(failure) }
      sent += 1
    }
    guard isWholeRead, acknowledged == sent else { return .underWay }
    stage = .description
    let published = PublishedImage(
      id: id, size: bytes, chunks: sent, digest: "SHA-256=\(Base64.encode(hash.finish()))", epoch: epoch,
      position: image.position, from: image.from)
    let failure = transport.publish(
      PublishedImage.subject(settings), reply: "\(inbox).image.description", identity: nil, rollup: nil,
      Array(published.text(settings, time: WallClock.text).utf8))
    return failure.map { .failed($0) } ?? .underWay
  }
}
