import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Entries of directories on the way to a file") struct DirectoryEntriesTests {
  private func entries(_ path: String) -> [String] {
    var visited: [String] = []
    DirectoryEntries.walk(path) { directory, name, isLast in
      visited.append("\(directory) \(name)\(isLast ? " last" : "")")
    }
    return visited
  }

  @Test func linksAreFollowedAndBothNamesVisited() throws {
    let directory = try TemporaryDirectory()
    // The folder of temporary files may itself be behind links.
    let root = try require(FilePath.resolved(directory.path))
    for path in ["r1", "r1/sub"] { expectEqual(mkdir("\(root)/\(path)", 0o755), 0) }
    for (link, target) in [
      ("live", "r1"), ("up", "../\(FilePath.name(of: root))/r1/./sub"), ("absolute", "\(root)/r1"),
      ("r1/db", "sub//real"),
      ("loop", "loop"), ("missing", "nowhere/at/all"),
    ] { expectEqual(symlink(target, "\(root)/\(link)"), 0) }
    try SmallFile.replace("\(root)/r1/sub/real", with: [])
    let above = entries(root).dropLast() + ["\(FilePath.directory(of: root)) \(FilePath.name(of: root))"]
    func below(_ names: String...) -> [String] { above + names.map { $0.replacing("@", with: root) } }
    expectEqual(entries("\(root)/r1/sub/real"), below("@ r1", "@/r1 sub", "@/r1/sub real last"))
    expectEqual(
      entries("\(root)//live/./db"), below("@ live", "@ r1", "@/r1 db last", "@/r1 sub", "@/r1/sub real last"))
    expectEqual(entries("\(root)/up/real"), below("@ up", above.last ?? "", "@ r1", "@/r1 sub", "@/r1/sub real last"))
    expectEqual(
      entries("\(root)/absolute/sub/real"), below("@ absolute") + below("@ r1", "@/r1 sub", "@/r1/sub real last"))
    expectEqual(entries("\(root)/r1/../r1/none/x"), below("@ r1", "@ r1", "@/r1 none"))
    expectEqual(entries("\(root)/missing"), below("@ missing last", "@ nowhere"))
    expectEqual(entries("\(root)/loop"), below("@ loop last") + Array(repeating: "\(root) loop last", count: 40))
    expectEqual(entries("\(root)/r1/sub/real/x"), below("@ r1", "@/r1 sub", "@/r1/sub real", "@/r1/sub/real x last"))
  }
}
