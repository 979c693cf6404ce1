import Foundation
import TestSupport
import Testing

/// Rules for all sources that the compiler cannot check.
@Suite("One place for a system call")
struct SystemCallPlacesTests {
  @Test(
    "threads are started and clocks are read in one file each",
    arguments: [
      ("pthread_create", "FeedSystem/Threads/Thread.swift"), ("clock_gettime", "FeedSystem/Threads/Clocks.swift"),
      ("eventfd(", "FeedSystem/Threads/WakeUp.swift"),
    ])
  func place(call: String, file: String) throws {
    let sources = "\(BuildProducts.packageFolder)/Sources"
    let names = try #require(FileManager.default.enumerator(atPath: sources)).compactMap { $0 as? String }
    let users = try names.filter { name in
      guard name.hasSuffix(".swift") || name.hasSuffix(".c") else { return false }
      return try String(contentsOfFile: "\(sources)/\(name)", encoding: .utf8).contains(call)
    }
    #expect(users == [file])
  }
}
