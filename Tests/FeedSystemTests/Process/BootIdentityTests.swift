import TestSupport
import Testing

@testable import FeedSystem

@Suite("Identity of the boot")
struct BootIdentityTests {
  static let dashed = "793e733f-5541-4bda-8f2d-079cb1819bfb"
  static let plain = "793e733f55414bda8f2d079cb1819bfb"

  @Test("the kernel's identity wins, and the environment's has the same form")
  func sources() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("boot_id")
    let environment = Environment([BootIdentity.variable: Self.plain])
    #expect(BootIdentity.of(environment, file: file) == Self.dashed)
    #expect(BootIdentity.of(Environment([BootIdentity.variable: Self.dashed]), file: file) == Self.dashed)
    try SmallFile.replace(file, with: Array("0\(Self.dashed.dropFirst())\n".utf8))
    #expect(BootIdentity.of(environment, file: file) == "0\(Self.dashed.dropFirst())")
  }

  @Test(
    "what is no identity counts as none", arguments: ["", "x", "%b", "793e733f55414bda8f2d079cb1819bf", dashed + "0"])
  func nonsense(text: String) {
    #expect(BootIdentity.of(Environment([BootIdentity.variable: text]), file: "/nonexistent") == "")
    #expect(BootIdentity.of(Environment([:]), file: "/nonexistent") == "")
  }

  @Test("this system has one")
  func current() { #expect(BootIdentity.current.utf8.count == 36) }
}
