import FeedSystem
import TestSupport
import Testing

@Suite("Socket paths")
struct SocketPathTests {
  @Test(arguments: [
    ([:], "/run/feedd/feedd.sock"),
    (["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/feedd.sock"),
    (["XDG_RUNTIME_DIR": "/run/user/7", "RUNTIME_DIRECTORY": "/run/x"], "/run/x/feedd.sock"),
    (["RUNTIME_DIRECTORY": "/run/x:/run/y"], "/run/x/feedd.sock"),
    (["FEEDD_SOCKET": "/a", "RUNTIME_DIRECTORY": "/run/x", "XDG_RUNTIME_DIR": "/run/user/7"], "/a"),
    (["FEEDD_SOCKET": "", "RUNTIME_DIRECTORY": "", "XDG_RUNTIME_DIR": ""], "/run/feedd/feedd.sock"),
  ])
  func ofTheDaemon(variables: [String: String], path: String) {
    #expect(SocketPath.daemonDefault(Environment(variables)) == path)
  }

  @Test func ofAClient() throws {
    let directory = try TemporaryDirectory()
    let session = Environment(["XDG_RUNTIME_DIR": directory.path, "RUNTIME_DIRECTORY": "/run/x"])
    #expect(SocketPath.clientDefault(session) == "/run/feedd/feedd.sock")
    let listener = try UnixListener.bind(path: directory.file("feedd.sock"))
    #expect(SocketPath.clientDefault(session) == listener.path)
    #expect(SocketPath.clientDefault(Environment(["FEEDD_SOCKET": "/a", "XDG_RUNTIME_DIR": directory.path])) == "/a")
    #expect(SocketPath.clientDefault(Environment([:])) == "/run/feedd/feedd.sock")
  }
}
