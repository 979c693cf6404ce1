import FeedEngine
import FeedModel

@testable import FeedServer

extension Configuration {
  /// Parses a configuration of the directory `/etc/feedd`, with a user `ann` (1001) and a group `staff` (50) of the user 1002.
  init(text: String, fixedLimits: Set<String> = []) throws(ConfigurationError) {
    let accounts = AccountNames(
      user: { $0 == "ann" ? 1001 : nil }, group: { $0 == "staff" ? (gid: 50, members: [1002]) : nil })
    let surroundings = Surroundings(
      directory: "/etc/feedd", limits: Limits(), fixedLimits: fixedLimits, accounts: accounts)
    let bytes = Array(text.utf8)
    let result: Result<Configuration, ConfigurationError> = bytes.withUnsafeBytes { bytes in
      do throws(ConfigurationError) {
        return .success(try Configuration(parsing: bytes, surroundings))
      } catch {
        return .failure(error)
      }
    }
    self = try result.get()
  }
}

extension EngineHarness {
  /// Applies a configuration and runs the turn.
  @discardableResult
  func configure(_ text: String) throws -> ConfigurationChanges {
    let changes = try engine.configure(Configuration(text: text), now: now)
    turn()
    return changes
  }
}
