import FeedSystem
import Glibc

/// An image in the object store bucket of a group, in the layout of NATS's object stores: chunks on `$O.bucket.C.id` and one
/// message that describes them on `$O.bucket.M.name`.
///
/// There are two: the newest one, and the one before, behind which the stream is trimmed.
struct PublishedImage: Equatable {
  /// The names of the objects, which are used in turn.
  static let names = ["image", "image2"]
  /// The maximum bytes of a chunk, unless the servers take less.
  static let chunkBytes = 128 << 10

  let name: String
  let id: String
  let size: Int
  let chunks: Int
  /// SHA-256 of the bytes, as `SHA-256=` and base64.
  let digest: String
  let epoch: String
  let position: UInt64
  let from: UInt64
  /// The last messages that it was made of.
  let records: LogRecords

  static func chunkSubject(_ settings: GroupSettings, _ id: String) -> String { "$O.\(settings.bucket).C.\(id)" }
  static func subject(_ settings: GroupSettings, _ name: String) -> String {
    "$O.\(settings.bucket).M.\(Base64.encode(Array(name.utf8)))"
  }

  func text(_ settings: GroupSettings, chunkBytes: Int, time: String) -> String {
    "{\"name\":\"\(name)\",\"bucket\":\"\(settings.bucket)\",\"nuid\":\"\(id)\",\"size\":\(size),\"chunks\":\(chunks),"
      + "\"mtime\":\"\(time)\",\"digest\":\"\(digest)\",\"options\":{\"max_chunk_size\":\(chunkBytes)},"
      + "\"metadata\":{\"epoch\":\"\(epoch)\",\"position\":\"\(position)\",\"from\":\"\(from)\",\"tail\":\(records.text.quotedAsJSON)}}"
  }
}

extension PublishedImage {
  /// Returns nil if the description is not that of a group's image.
  init?(_ facts: JSONObject) {
    guard facts.bool("deleted") != true, let name = facts.string("name"), let id = facts.string("nuid"),
      let size = facts.int("size"), let chunks = facts.int("chunks"), chunks >= 0,
      let digest = facts.string("digest"), let ours = facts.object("metadata"),
      let epoch = ours.string("epoch"), let position = ours.string("position").flatMap({ UInt64($0) }),
      let from = ours.string("from").flatMap({ UInt64($0) })
    else { return nil }
    self.init(
      name: name, id: id, size: size, chunks: chunks, digest: digest, epoch: epoch, position: position, from: from,
      records: ours.string("tail").flatMap { JSONObject($0) }.flatMap(LogRecords.init) ?? LogRecords())
  }
}

/// An image of the state in a file of this host, and the place in the stream that it continues from.
public struct WrittenImage: Sendable {
  public let path: String
  public let bytes: Int
  /// The last message that it covers, and the first one that is needed besides it.
  public let position: UInt64
  public let from: UInt64
  /// Whether it is published for all members.
  public let isShared: Bool
  /// The table of the members at that place.
  public let note: String

  public init(path: String, bytes: Int, position: UInt64, from: UInt64, isShared: Bool, note: String) {
    (self.path, self.bytes, self.position) = (path, bytes, position)
    (self.from, self.isShared, self.note) = (from, isShared, note)
  }
}

/// Publishes an image: asks for the bucket, sends the chunks a few at a time, then their description. Used by the thread of the
/// log, which passes the servers' answers.
struct ImageUpload {
  private enum Stage {
    case bucket, chunks
    case description(PublishedImage)
  }

  enum Outcome: Equatable {
    case underWay
    /// Complete: the image, and the place of the first chunk in the bucket's stream.
    case complete(PublishedImage, firstChunk: UInt64)
    case failed(String)
  }

  /// Chunks that are not acknowledged yet.
  private static let window = 8
  private static let patience: UInt64 = 5_000_000_000

  private let image: WrittenImage
  private let name: String
  private let settings: GroupSettings
  private let epoch: String
  private let inbox: String
  private let id: String
  private let transport: any GroupTransport
  private var stage = Stage.bucket
  /// The chunks, as far as they were sent.
  private var chunks: ImageChunks
  private var acknowledged = 0
  private var firstChunk: UInt64 = .max
  private var heardAt: UInt64

  /// - Parameter name: that of the object, one of ``PublishedImage/names``.
  init(
    _ image: WrittenImage, as name: String, _ settings: GroupSettings, epoch: String, replicas: Int, inbox: String,
    id: String,
    _ transport: any GroupTransport, now: UInt64
  ) {
    (self.image, self.name, self.settings, self.epoch) = (image, name, settings, epoch)
    (self.inbox, self.id, self.transport) = (inbox, id, transport)
    heardAt = now
    chunks = ImageChunks(image.path, maxBytes: transport.room(for: PublishedImage.chunkBytes))
    let text = JetStream.bucketConfiguration(settings, replicas: replicas)
    _ = transport.publish(
      JetStream.createStream(settings.bucketStream), reply: "\(inbox).image.\(id).bucket", identity: nil,
      Array(text.utf8))
  }

  func close() { chunks.close() }
  func isLate(_ now: UInt64) -> Bool { now &- heardAt > Self.patience }

  /// Handles the answer to a message whose reply subject ended with `name`.
  mutating func receive(_ answer: JSONObject?, _ name: Substring, now: UInt64) -> Outcome {
    guard chunks.isOpen else { return .failed("cannot read \(image.path)") }
    // Answers to an upload that was given up may arrive during the next one.
    guard name.hasPrefix("\(id).") else { return .underWay }
    // A member that stood still would replace an image that others have published meanwhile.
    if isLate(now) { return .failed("the servers did not answer in time") }
    let name = name.dropFirst(id.utf8.count + 1)
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
    case .description(let published):
      guard name == "description" else { return .underWay }
      if let failure { return .failed(failure.description) }
      return .complete(published, firstChunk: firstChunk)
    }
  }

  private mutating func sendChunks() -> Outcome {
    while chunks.count - acknowledged < Self.window && !chunks.isAtEnd {
      let reply = "\(inbox).image.\(id).\(chunks.count)"
      guard let chunk = chunks.next() else { return .failed("cannot read \(image.path)") }
      if chunk.isEmpty { break }
      let failure = transport.publish(PublishedImage.chunkSubject(settings, id), reply: reply, identity: nil, chunk)
      if let failure { return .failed(failure) }
    }
    guard chunks.isAtEnd, acknowledged == chunks.count else { return .underWay }
    let published = PublishedImage(
      name: name, id: id, size: chunks.bytes, chunks: chunks.count, digest: chunks.finish(), epoch: epoch,
      position: image.position, from: image.from, records: MemberTable(text: image.note)?.records ?? LogRecords())
    stage = .description(published)
    let failure = transport.publish(
      PublishedImage.subject(settings, name), reply: "\(inbox).image.\(id).description", identity: nil,
      Array(published.text(settings, chunkBytes: chunks.maxBytes, time: WallClock.text).utf8))
    return failure.map { .failed($0) } ?? .underWay
  }
}

/// Reads the chunks of an image from a file.
///
/// Invariant: the counts and the hash are those of the chunks that were returned.
private struct ImageChunks {
  private let file: Int32
  let maxBytes: Int
  private(set) var count = 0
  private(set) var bytes = 0
  private(set) var isAtEnd = false
  private var hash = SHA256()

  init(_ path: String, maxBytes: Int) {
    file = open(path, O_RDONLY | O_CLOEXEC)
    self.maxBytes = maxBytes
  }

  var isOpen: Bool { file >= 0 }
  func close() { if isOpen { Glibc.close(file) } }

  /// Returns the next chunk, an empty one at the end; nil if it cannot be read.
  mutating func next() -> [UInt8]? {
    var read = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: maxBytes) { space, filled in
      read = Glibc.read(file, space.baseAddress, space.count)
      filled = max(read, 0)
    }
    if read < 0 { return nil }
    isAtEnd = read == 0
    if isAtEnd { return chunk }
    chunk.withUnsafeBytes { hash.update($0) }
    bytes += read
    count += 1
    return chunk
  }

  /// The digest of all chunks, as a bucket has it. The last call but `close`.
  mutating func finish() -> String { "SHA-256=\(Base64.encode(hash.finish()))" }
}
