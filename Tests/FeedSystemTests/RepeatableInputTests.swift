import Foundation
import Glibc
import TestSupport
import Testing

@testable import FeedSystem

struct RepeatableInputTests {
  private func contents(_ input: borrowing RepeatableInput) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 7)
    while true {
      let count = try part.withUnsafeMutableBytes { try input.read(into: $0, at: bytes.count) }
      if count == 0 { return bytes }
      bytes += part[..<count]
    }
  }

  @Test("a file is read in place, a pipe from a copy, both several times") func readsTwice() throws {
    let directory = try TemporaryDirectory()
    let bytes = (0..<100).map { UInt8($0) }
    let path = directory.file("f")
    try SmallFile.replace(path, with: bytes)
    let file = try RepeatableInput(path, copyIn: directory.file("absent"))
    for _ in 0..<2 { try expectEqual(contents(file), bytes) }
    var pipe = try TestSupport.Pipe()
    try Descriptor.writeAll(bytes[...], to: pipe.writingNumber, "write")
    pipe.writing = nil
    let copy = try RepeatableInput("/dev/fd/\(pipe.readingNumber)", copyIn: directory.path)
    for _ in 0..<2 { try expectEqual(contents(copy), bytes) }
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["f"])
  }

  @Test("a directory is refused by its name") func directoryIsRefused() throws {
    let directory = try TemporaryDirectory()
    let error = #expect(throws: SystemError.self) { _ = try RepeatableInput(directory.path, copyIn: directory.path) }
    expectEqual(error?.description, "cannot read \(directory.path): is a directory; pass a file")
  }

  @Test("a copy waits for a pipe that another program made nonblocking") func nonblockingPipe() throws {
    let directory = try TemporaryDirectory()
    var pipe = try TestSupport.Pipe()
    try pipe.reading?.setNonblocking(true)
    let (reading, writing) = (pipe.readingNumber, pipe.writing.take()?.release() ?? -1)
    let writer = try FeedSystem.Thread("writer") {
      for byte in UInt8(0)..<50 {
        // Until the copy has read everything before, so that it finds the pipe empty.
        var waiting: Int32 = 1
        while waiting > 0 { _ = ioctl(reading, UInt(FIONREAD), &waiting) }
        _ = withUnsafeBytes(of: byte) { write(writing, $0.baseAddress, 1) }
      }
      close(writing)
    }
    let copy = try FileCopy.unnamed(reading, "the pipe", in: directory.path)
    writer.join()
    var bytes = [UInt8](repeating: 0, count: 100)
    expectEqual(pread(copy.rawValue, &bytes, 100, 0), 50)
    expectEqual(bytes.prefix(50), ArraySlice(UInt8(0)..<50))
  }
}
