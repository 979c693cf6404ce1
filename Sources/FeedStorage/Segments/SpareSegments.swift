import FeedSystem
import Glibc

/// The segments that wait for their use: a spare, which the next segment is made of, and a short one in reserve for requests that
/// free space. Decides how long a segment is.
///
/// Invariant: the space of what waits is allocated, and its bytes are zero.
struct SpareSegments {
  /// The names of segments that wait for their use.
  static let names = [spareName, reserveName]
  private static let spareName = "log-spare"
  private static let reserveName = "log-reserve"
  /// The name of a file that is being created.
  private static let freshName = "log-new"
  private static let sizes = (least: 256 << 10, first: 2 << 20, most: 4 << 20, reserve: 512 << 10)

  private typealias Waiting = (file: any LogFile, bytes: Int)

  private let files: any LogDirectory
  private let directory: String
  private let durability: Durability
  private var spare: Waiting?
  private var reserved: Waiting?

  init(_ files: any LogDirectory, in directory: String, _ durability: Durability) {
    (self.files, self.directory, self.durability) = (files, directory, durability)
  }

  /// The bytes of what waits.
  var bytes: Int { (spare?.bytes ?? 0) + (reserved?.bytes ?? 0) }
  /// Whether nothing should be allocated.
  var areComplete: Bool { spare != nil && reserved != nil }

  /// Uses what waits for its use since an earlier run, and removes what was being created.
  mutating func find() throws(SystemError) {
    try files.remove(Self.freshName)
    let names = try files.names()
    spare = names.contains(Self.spareName) ? try find(Self.spareName) : nil
    reserved = names.contains(Self.reserveName) ? try find(Self.reserveName) : nil
  }

  private func find(_ name: String) throws(SystemError) -> Waiting? {
    // By another name, as in a copy made of hard links, it may be a segment with records.
    let isLinked = (FilePath.nameCount(of: "\(directory)/\(name)") ?? 1) > 1
    guard !isLinked, let file = try? files.open(name), let bytes = file.size(named: name),
      (Self.sizes.least...Self.sizes.most).contains(bytes), let content = try? SegmentBytes(file, count: bytes)
    else {
      try files.remove(name)
      return nil
    }
    // A header may have been written before the run ended. After a loss of power, a segment in use may have the name back that it
    // had before. Whatever was left behind the records would be damage to a later start.
    if !Self.isZero(content.bytes) { try file.writeZeros(0..<bytes) }
    return (file, bytes)
  }

  private static func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    return bytes[0] == 0 && memcmp(start, start + 1, bytes.count - 1) == 0
  }

  /// Returns a file with room for `needed` bytes: the spare, a new one, or the reserve. The caller renames it.
  /// - Parameters:
  ///   - grows: whether the room of the next image must stay free, and the reserve untouched.
  ///   - image: the bytes that the next image needs.
  ///   - log: the bytes of all segments.
  mutating func take(
    _ needed: Int, grows: Bool, image: Int, log: Int
  ) throws(SystemError) -> (any LogFile, size: Int, name: String) {
    if let spare, spare.bytes >= needed, !grows || files.freeBytes >= image {
      self.spare = nil
      return (spare.file, spare.bytes, Self.spareName)
    }
    let wanted = Self.size(free: files.freeBytes, log: log)
    let size = needed > wanted ? (needed + 0xffff) / 0x10000 * 0x10000 : wanted
    do throws(SystemError) {
      guard !grows || files.freeBytes >= size + image else {
        throw SystemError(code: ENOSPC, operation: "allocate a segment of the log in", path: directory)
      }
      let fresh = SegmentFiles.Wanted(name: Self.freshName, bytes: size)
      return (try SegmentFiles(files, durability).create(fresh), size, fresh.name)
    } catch {
      guard !grows, let reserved, reserved.bytes >= needed else { throw error }
      self.reserved = nil
      return (reserved.file, reserved.bytes, Self.reserveName)
    }
  }

  /// The segment to allocate next; nil if none is missing, or if there is no room.
  func missing(image: Int, log: Int) -> SegmentFiles.Wanted? {
    if reserved == nil { return SegmentFiles.Wanted(name: Self.reserveName, bytes: Self.sizes.reserve) }
    let size = Self.size(free: files.freeBytes, log: log)
    return spare == nil && files.freeBytes >= size + image
      ? SegmentFiles.Wanted(name: Self.spareName, bytes: size) : nil
  }

  /// Takes a segment that was missing.
  mutating func add(_ wanted: SegmentFiles.Wanted, _ file: any LogFile) {
    if wanted.name == Self.reserveName { reserved = (file, wanted.bytes) } else { spare = (file, wanted.bytes) }
  }

  /// The bytes of a new segment: longer ones for a longer log, shorter ones if space is scarce.
  private static func size(free: Int, log: Int) -> Int {
    let wanted = log < 8 << 20 ? sizes.first : sizes.most
    return max(sizes.least, min(wanted, free / 16 / sizes.least * sizes.least))
  }

  /// Whether there is room for a segment, a spare and the next image.
  static func hasRoom(free: Int, image: Int, log: Int) -> Bool { free >= image + 2 * size(free: free, log: log) }
}

/// The work on files that needs no lock on the segments, because it may wait for the disk.
struct SegmentFiles {
  /// A segment that should be allocated.
  struct Wanted {
    let name: String
    let bytes: Int
  }

  /// Segments that an image covers, and the one behind them.
  struct Covered {
    let names: [String]
    let kept: String
  }

  private let files: any LogDirectory
  private let durability: Durability

  init(_ files: any LogDirectory, _ durability: Durability) { (self.files, self.durability) = (files, durability) }

  /// Creates a segment.
  /// - Parameter isSoon: whether it is filled soon. Its memory is then prepared, so that the thread that stores a batch need not.
  ///   Later, the zeros would have gone to the disk for nothing.
  func create(_ wanted: Wanted, isSoon: Bool = false) throws(SystemError) -> any LogFile {
    let file = try files.create(wanted.name, size: wanted.bytes, isZeroed: durability == .disk)
    if isSoon && durability == .process { try file.writeZeros(0..<wanted.bytes) }
    return file
  }

  func remove(_ covered: Covered) {
    // The header of the first segment tells a start of which boot it is. Until now those before it did.
    if durability == .process {
      guard let file = try? files.open(covered.kept), (try? file.sync()) != nil else { return }
    }
    for name in covered.names { try? files.remove(name) }
  }
}
