import FeedSystem
import Foundation
import Glibc
import TestSupport
import Testing

struct PrivateDirectoryTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("names are safe where only this user and root may rename files") func protectedNames() throws {
    let (parent, child) = (directory.file("parent"), directory.file("parent/child"))
    expect(mkdir(parent, 0o700) == 0 && mkdir(child, 0o700) == 0)
    expect(PrivateDirectory.protectsNames(child))
    expectEqual(symlink(child, directory.file("link")), 0)
    expect(PrivateDirectory.protectsNames(directory.file("link")))
    for (mode, isSafe) in [(0o755, true), (0o777, false), (0o770, false), (0o1777, true)] as [(mode_t, Bool)] {
      expectEqual(chmod(parent, mode), 0)
      expectEqual(PrivateDirectory.protectsNames(parent), isSafe)
      expectEqual(PrivateDirectory.protectsNames(child), isSafe)
      expectEqual(PrivateDirectory.protectsNames(directory.file("link")), isSafe)
    }
    expect(!PrivateDirectory.protectsNames(directory.file("absent")))
  }

  /// A writer is told at once that it may not write, a reader needs no such right.
  @Test func filesOfAReaderAreOnlyRead() throws {
    try SmallFile.replace(directory.file("f"), with: [7])
    expectEqual(chmod(directory.file("f"), 0o400), 0)
    let file = try SystemDirectory(directory.path, isReadOnly: true).open("f")
    var byte: UInt8 = 0
    try expectEqual(withUnsafeMutableBytes(of: &byte) { try file.read($0, at: 0) }, 1)
    expectEqual(byte, 7)
    let error = #expect(throws: SystemError.self) { try withUnsafeBytes(of: &byte) { try file.writeAll($0, at: 0) } }
    expectEqual(error?.code, EBADF)
    // Root may write any file.
    if geteuid() == 0 { return }
    let refused = #expect(throws: SystemError.self) { try SystemDirectory(directory.path).open("f") }
    expectEqual(refused?.code, EACCES)
  }

  @Test("a file gets only a name that no other file has") func newName() throws {
    for name in ["a", "b"] { try SmallFile.replace(directory.file(name), with: Array(name.utf8)) }
    let error = #expect(throws: SystemError.self) { try FileCopy.name(directory.file("a"), directory.file("b")) }
    expectEqual(error?.code, EEXIST)
    try FileCopy.name(directory.file("a"), directory.file("c"))
    try expectEqual(SmallFile.read(directory.file("b")), Array("b".utf8))
    try expectEqual(SmallFile.read(directory.file("c")), Array("a".utf8))
  }

  @Test("root gives a lock file to the owner of its directory", .enabled(if: geteuid() == 0))
  func lockFileForAnotherUser() throws {
    expectEqual(chown(directory.path, 1234, 1235), 0)
    guard let lock = try FileLock.acquire(directory.file("lock")) else { return expectEqual("locked", "free") }
    try lock.give(toOwnerOf: directory.path)
    var status = stat()
    expectEqual(stat(directory.file("lock"), &status), 0)
    expect(status.st_uid == 1234 && status.st_gid == 1235)
    _ = consume lock
  }

  /// A process may use the directory that was put in place of one that was moved away.
  @Test func directoryInPlaceOfAnotherIsLeftAlone() throws {
    let path = directory.file("state")
    expectEqual(mkdir(path, 0o700), 0)
    let former = SystemDirectory(path)
    do {
      guard let lock = try FileLock.acquire("\(path)/lock") else { return expectEqual("locked", "free") }
      expect(rename(path, directory.file("moved")) == 0 && mkdir(path, 0o700) == 0)
      for name in ["lock", "file"] { try SmallFile.replace("\(path)/\(name)", with: [1]) }
      _ = consume lock
    }
    for act in [
      { _ = try former.open("file") }, { _ = try former.create("new", size: 1, isZeroed: false) },
      { try former.rename("file", to: "other") }, { try former.remove("file") },
    ] as [() throws -> Void] {
      expectEqual(#expect(throws: SystemError.self) { try act() }?.code, ENOENT)
    }
    try expectEqual(SystemDirectory(path).names().sorted(), [".", "..", "file", "lock"])
  }
}

@Suite("Small files")
struct SmallFileTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test func replacedFileIsReadBack() throws {
    let path = directory.file("f")
    for size in [0, 1, 100_000, 3] {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
      try SmallFile.replace(path, with: bytes)
      try expectEqual(SmallFile.read(path), bytes)
    }
    expectEqual(#expect(throws: SystemError.self) { try SmallFile.read(path, limit: 2) }?.code, EFBIG)
    expectEqual(#expect(throws: SystemError.self) { try SmallFile.read(directory.file("none")) }?.code, ENOENT)
    expectEqual(#expect(throws: SystemError.self) { try SmallFile.read(directory.path) }?.code, EISDIR)
    let folder = directory.file("no/f")
    expectEqual(#expect(throws: SystemError.self) { try SmallFile.replace(folder, with: []) }?.code, ENOENT)
  }

  @Test("a file that is replaced keeps its mode, and a new one is private")
  func modes() throws {
    let path = directory.file("f")
    func mode() -> mode_t {
      var status = stat()
      return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }
    try SmallFile.replace(path, with: [1])
    expectEqual(mode(), 0o600)
    for kept in [0o640, 0o400, 0o666] as [mode_t] {
      expectEqual(chmod(path, kept), 0)
      try SmallFile.replace(path, with: [2])
      expectEqual(mode(), kept)
    }
    try SmallFile.replace(path, with: [3], isPublic: true)
    expectEqual(mode(), 0o644)
  }

  @Test("a FIFO and a device are refused without waiting for a writer")
  func onlyRegularFiles() throws {
    let fifo = directory.file("fifo")
    expectEqual(mkfifo(fifo, 0o600), 0)
    for path in [fifo, "/dev/zero"] {
      expectEqual(#expect(throws: SystemError.self) { try SmallFile.read(path) }?.code, EINVAL)
    }
  }

  @Test("read follows a symbolic link; a replaceable file refuses to read one and replaces it")
  func links() throws {
    let (target, link) = (directory.file("target"), directory.file("link"))
    try SmallFile.replace(target, with: [1])
    expectEqual(symlink(target, link), 0)
    try expectEqual(SmallFile.read(link), [1])
    let file = try ReplaceableFile(link)
    let error = #expect(throws: SystemError.self) { try file.read(limit: 9) }
    expectEqual(error?.code, ELOOP)
    expectEqual(error?.path, link)
    try file.replace(with: [2])
    try expectEqual(SmallFile.read(target), [1])
    try expectEqual(file.read(limit: 9), [2])
    expectEqual(FileIdentity(at: link)?.isRegularFile, true)
  }

  @Test("only a regular file is replaced") func otherFilesStay() throws {
    let (pipe, link) = (directory.file("pipe"), directory.file("link"))
    expect(mkfifo(pipe, 0o600) == 0 && symlink(pipe, link) == 0)
    for path in [pipe, link] {
      let error = #expect(throws: SystemError.self) { try SmallFile.replace(path, with: [1]) }
      expectEqual(error?.description, "cannot write \(path): invalid argument; pass a regular file")
    }
    var status = stat()
    expect(lstat(pipe, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
    expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test("a replaceable file stays in its directory when another one takes the directory's name")
  func exchangedDirectory() throws {
    let (own, moved, other) = (directory.file("own"), directory.file("moved"), directory.file("other"))
    expect(mkdir(own, 0o700) == 0 && mkdir(other, 0o700) == 0)
    let file = try ReplaceableFile("\(own)/f")
    try expectEqual(file.read(limit: 9), nil)
    try SmallFile.replace("\(other)/f", with: [7])
    expect(rename(own, moved) == 0 && symlink(other, own) == 0)
    try expectEqual(file.read(limit: 9), nil)
    try file.replace(with: [1])
    try expectEqual(SmallFile.read("\(moved)/f"), [1])
    try expectEqual(SmallFile.read("\(other)/f"), [7])
  }

  @Test("no temporary file remains after success or failure")
  func noLeftovers() throws {
    try SmallFile.replace(directory.file("f"), with: [1])
    #expect(throws: SystemError.self) { try SmallFile.replace(directory.path, with: [1]) }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    expectEqual(names, ["f"])
  }
}
