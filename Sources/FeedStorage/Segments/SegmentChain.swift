import FeedJSON
import FeedSystem

/// The segments that a start needs: those that continue the image, in order.
///
/// Invariant: each segment continues the one before it, and each but the last has a batch.
struct SegmentChain {
  /// A segment with a valid header.
  struct Segment {
    /// Where the records are.
    enum Content {
      /// A file of a directory. `open` is nil if it is opened only while it is read, because there may be more than a process may
      /// open.
      case file(in: any LogDirectory, open: (any LogFile)?)
      /// A copy in a backup.
      case copy(SegmentBytes)
    }

    let header: SegmentHeader
    let checksum: UInt32
    let content: Content

    var name: String { SegmentHeader.name(of: header.number) }
    /// Whether it is a file, not a copy.
    var isFile: Bool { if case .file = content { true } else { false } }

    /// Opens the file; returns nil for a copy.
    func open() throws(SystemError) -> (any LogFile)? {
      guard case .file(let files, let file) = content else { return nil }
      if let file { return file }
      return try files.open(name)
    }

    func load() throws(SystemError) -> SegmentBytes {
      switch content {
      case .file(_, let file?): try SegmentBytes(file, count: header.fileBytes)
      case .file(let files, nil): try SegmentBytes(files.open(name), count: header.fileBytes)
      case .copy(let bytes): bytes
      }
    }
  }

  /// What a segment is read after.
  struct Base {
    /// The last batch that the image covers; 0 without an image.
    var batch: UInt64
    /// The epoch of the image; nil without one.
    var epoch: String?
  }

  private(set) var segments: [Segment] = []
  /// The names of files that are not needed any more, the newest first.
  private(set) var leftovers: [String] = []
  /// The highest number of a segment, also of one that is not needed.
  private(set) var highest: UInt64 = 0
  /// Whether a part of the log was left out because it does not verify.
  private(set) var isCut = false
  /// Whether the log may have lost its end with the power.
  private(set) var mayBeCut = false
  /// Whether the daemon stopped cleanly.
  private var wasStopped = false
  private let directory: String

  /// What may have happened to the end of a segment.
  func trust(of segment: Segment, boot: String) -> SegmentReader.Trust {
    // A copy ends with a whole record, whatever happened to the system since.
    if !segment.isFile { return .sameBoot }
    if isCut { return .unsynced }
    if wasStopped || !boot.isEmpty && segment.header.boot == boot { return .sameBoot }
    return segment.header.isSynced ? .synced : .unsynced
  }

  /// The chain of a directory without segments.
  init(_ directory: String) { self.directory = directory }

  /// Reads the headers of all segments in a directory.
  /// - Parameters:
  ///   - skipsDamaged: whether the log is cut where it does not verify.
  ///   - keepsOpen: whether the files are kept open, if the process may open so many: a daemon may remove them before they are
  ///     read.
  /// - Throws: if segments are missing, damaged or do not belong together.
  init(
    _ files: any LogDirectory, in directory: String, after base: Base, boot: String, skipsDamaged: Bool,
    keepsOpen: Bool
  ) throws(StorageError) {
    self.directory = directory
    var found: [(number: UInt64, segment: Segment?, error: StorageError?)] = []
    let names: [String]
    do throws(SystemError) {
      names = try files.names()
    } catch {
      throw error.isMissing ? .absent(directory) : StorageError(error, path: directory)
    }
    do throws(SystemError) {
      let numbers = names.compactMap(SegmentHeader.number(in:)).sorted()
      let limit = keepsOpen ? OpenFileLimit.raise(to: numbers.count + Self.otherFiles) - Self.otherFiles : 0
      for number in numbers {
        let (segment, error) = try Self.read(files, number, directory, keepsOpen: found.count < limit)
        found.append((number, segment, error))
      }
    } catch {
      throw StorageError(error, path: directory)
    }
    guard let last = found.last else { return }
    highest = last.number
    guard let start = found.lastIndex(where: { ($0.segment?.header.firstBatch).map { $0 <= base.batch + 1 } ?? false })
    else {
      if skipsDamaged && base.epoch != nil {
        leftovers = found.reversed().map { SegmentHeader.name(of: $0.number) }
        (isCut, mayBeCut) = (true, true)
        return
      }
      let first = found.first?.segment?.header.firstBatch
      throw found.first?.error
        ?? StorageError(
          base.epoch == nil ? .doesNotFit : .lost, path: directory,
          reason: first.map {
            "the log begins with batch \(grouped($0)), and \(base.epoch == nil ? "the image before it" : "what is between it and the image") is missing"
          }
            ?? "the log does not continue the image")
    }
    leftovers = found[..<start].reversed().map { SegmentHeader.name(of: $0.number) }
    let newest = found.last { $0.segment != nil }?.segment
    let mayBeCut = Self.mayBeCut(newest?.header, boot: boot)
    wasStopped = mayBeCut && Self.isStopped(newest)
    self.mayBeCut = skipsDamaged || mayBeCut && !wasStopped
    for (place, entry) in found[start...].enumerated() {
      if let problem = problem(of: entry, first: place == 0, base) {
        guard self.mayBeCut else { throw problem }
        isCut = true
        leftovers = found[(start + place)...].reversed().map { SegmentHeader.name(of: $0.number) } + leftovers
        break
      }
      if let segment = entry.segment { segments.append(segment) }
    }
    if segments.isEmpty, !skipsDamaged || base.epoch == nil, let error = found[start].error { throw error }
  }

  /// Whether a segment ends with the note of a clean stop, which was written after everything had been synced.
  private static func isStopped(_ segment: Segment?) -> Bool {
    guard let segment, let bytes = try? segment.load() else { return false }
    var reader = SegmentReader(bytes.bytes, segment.header, checksum: segment.checksum, trust: .sameBoot)
    while reader.next() != nil {}
    return reader.ending == .stopped
  }

  private static func mayBeCut(_ last: SegmentHeader?, boot: String) -> Bool {
    guard let last else { return false }
    return !last.isSynced && (boot.isEmpty || last.boot != boot)
  }

  /// The files that a process opens besides segments.
  private static let otherFiles = 64

  private static func read(
    _ files: any LogDirectory, _ number: UInt64, _ directory: String, keepsOpen: Bool = false
  ) throws(SystemError) -> (Segment?, StorageError?) {
    let name = SegmentHeader.name(of: number)
    let path = "\(directory)/\(name)"
    let file = try files.open(name)
    switch try SegmentHeader.read(file) {
    case .success(let (header, checksum)):
      guard header.number == number else {
        return (
          nil, StorageError(.brokenLog, path: path, reason: "the file is segment \(header.number) under another name")
        )
      }
      let size = file.size(named: name) ?? 0
      guard size == header.fileBytes else {
        return (
          nil,
          StorageError(
            .brokenLog, path: path,
            reason: "the file has \(counted(size, "byte")), and was written with \(grouped(header.fileBytes))")
        )
      }
      let content = Segment.Content.file(in: files, open: keepsOpen ? file : nil)
      return (Segment(header: header, checksum: checksum, content: content), nil)
    case .failure(.invalid):
      return (nil, StorageError(.brokenLog, path: path, reason: "the header does not match its checksum"))
    case .failure(.newer(let version)):
      return (
        nil,
        StorageError(
          .newerVersion, path: path,
          reason: "it was written by a newer feedd (format \(version); this one knows \(SegmentHeader.version))")
      )
    }
  }

  /// The reason why a segment does not continue the chain; nil if it does.
  private func problem(
    of entry: (number: UInt64, segment: Segment?, error: StorageError?), first isFirst: Bool, _ base: Base
  ) -> StorageError? {
    guard let segment = entry.segment else { return entry.error }
    let header = segment.header
    let path = "\(directory)/\(segment.name)"
    if isFirst {
      if let epoch = base.epoch, epoch != header.epoch && epoch != header.previousEpoch {
        return StorageError(.doesNotFit, path: path, reason: "the segment belongs to another epoch than the image")
      }
      return nil
    }
    guard let last = segments.last?.header else { return nil }
    if header.number != last.number + 1 {
      return StorageError(
        .lost, path: "\(directory)/\(SegmentHeader.name(of: last.number + 1))", reason: "the segment is missing")
    }
    if header.previousEpoch != last.epoch || header.firstBatch <= last.firstBatch {
      return StorageError(.doesNotFit, path: path, reason: "the segment does not continue the one before it")
    }
    return nil
  }

  /// The reason why a segment does not end as it should; nil if it does.
  ///
  /// A daemon may write the log while it is read. That the log goes on behind the last segment is then no fault: the segments hold
  /// what it had stored when their names were read.
  /// - Parameters:
  ///   - reader: the reader of the segment, at the end of its batches.
  ///   - place: the index of the segment.
  ///   - nextBatch: the batch that is wanted next.
  func problem(after reader: SegmentReader, at place: Int, wanting nextBatch: UInt64) -> StorageError? {
    if place + 1 < segments.count {
      let next = segments[place + 1].header.firstBatch
      if reader.nextBatch >= next || next <= nextBatch { return nil }
    } else {
      switch reader.ending {
      case .clean, .stopped, .torn: return nil
      case .next:
        let missing = SegmentHeader.name(of: segments[place].header.number + 1)
        if isContinued(at: reader.nextBatch) { return nil }
        return StorageError(.lost, path: "\(directory)/\(missing)", reason: "the segment is missing")
      case .damaged: break
      }
    }
    return StorageError(
      .brokenLog, path: "\(directory)/\(segments[place].name)",
      reason: "batch \(grouped(reader.nextBatch)) of the log does not match its checksum, or is missing")
  }

  /// Whether there is by now a segment behind the last one that goes on with a batch or a later one: images let a daemon remove
  /// those between.
  private func isContinued(at batch: UInt64) -> Bool {
    guard let last = segments.last?.header, case .file(let files, _) = segments.last?.content,
      let newest = try? files.names().compactMap(SegmentHeader.number(in:)).max(), newest > last.number,
      let next = try? Self.read(files, newest, directory).0?.header
    else { return false }
    return next.epoch == last.epoch && next.firstBatch >= batch
  }

  /// Adds the copy of a segment in a backup. The copy ends with the last record.
  mutating func addCopy(_ number: Int64, _ bytes: UnsafeRawBufferPointer, _ path: String) throws(StorageError) {
    guard case .some(let (header, checksum)) = try? SegmentHeader.decode(bytes),
      header.number == UInt64(clamping: number),
      bytes.count <= header.fileBytes, header.fileBytes <= Self.maxFileBytes,
      segments.last.map({ $0.header.number + 1 == header.number && $0.header.epoch == header.previousEpoch }) ?? true
    else {
      throw StorageError(
        .corrupt, path: path, reason: "row \(number) of the table log is not a segment, or out of place")
    }
    // Nothing follows the last record. The size in the header may be that of any file.
    let content = SegmentBytes(bytes, count: min(header.fileBytes, bytes.count + RecordHeader.byteCount))
    segments.append(Segment(header: header, checksum: checksum, content: .copy(content)))
  }

  /// A segment is longer than others only for one long request.
  private static let maxFileBytes = 4 << 30

  /// Records that these segments are not needed any more.
  mutating func replace(_ numbers: [UInt64]) {
    highest = numbers.last ?? 0
    leftovers = numbers.reversed().map(SegmentHeader.name(of:))
  }

  /// Leaves out the segments behind one of them, because its end does not verify.
  mutating func cut(behind place: Int) {
    leftovers = segments[(place + 1)...].reversed().map(\.name) + leftovers
    segments.removeSubrange((place + 1)...)
    isCut = true
  }
}

/// Where the stored log ends, as recovery found it.
struct LogEnd {
  /// A segment, where its records end, and where its bytes are zero.
  struct Last {
    let segment: SegmentChain.Segment
    let offset: Int
    let contentEnd: Int
  }

  /// The segments that the image does not cover, the last one last.
  var segments: [(number: UInt64, firstBatch: UInt64, bytes: Int)] = []
  /// The last segment, if its records can be continued.
  var last: Last?
  /// Files that are not needed any more, the newest first.
  var leftovers: [String] = []
  /// The highest number of a segment that exists.
  var highest: UInt64 = 0
  var nextBatch: UInt64 = 1
  /// The revision after the last batch.
  var revision: UInt64 = 0
  /// Whether a part of the log was left out.
  var isCut = false
}
