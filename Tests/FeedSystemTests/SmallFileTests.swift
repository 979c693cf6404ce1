import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Whole files")
struct SmallFileTests {
  @Test func comesBackAsItWasPut() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("f")
    for size in [0, 1, 100_000, 3] {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
      try SmallFile.replace(path, with: bytes, durable: size == 3)
      #expect(try SmallFile.read(path) == bytes)
    }
    #expect(#expect(throws: SystemError.self) { try SmallFile.read(path, limit: 2) }?.code == EFBIG)
    #expect(#expect(throws: SystemError.self) { try SmallFile.read(directory.file("none")) }?.code == ENOENT)
    let folder = directory.file("no/f")
    #expect(#expect(throws: SystemError.self) { try SmallFile.replace(folder, with: []) }?.code == ENOENT)
  }
}
