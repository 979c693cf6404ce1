import FeedEngine
import FeedModel
import FeedSystem

/// The file of `--config`, read at start and again at SIGHUP.
struct ConfigurationFile {
  /// The absolute path, independent of later changes of the working directory.
  let path: String
  private let surroundings: Configuration.Surroundings

  /// - Parameter options: the limits of the command line, which take precedence over those of the file.
  init?(_ options: DaemonOptions) {
    guard let path = options.configurationPath else { return nil }
    self.path = FilePath.absolute(path)
    surroundings = Configuration.Surroundings(
      directory: FilePath.directory(of: self.path), limits: options.limits, fixedLimits: options.givenLimits,
      accounts: AccountNames(user: Accounts.user(named:), group: Accounts.group(named:)))
  }

  /// Reads the current content of the file.
  func read() throws(ConfigurationFileError) -> Configuration {
    let bytes: [UInt8]
    do {
      bytes = try SmallFile.read(path)
    } catch {
      throw .unreadable(error)
    }
    let result: Result<Configuration, ConfigurationError> = bytes.withUnsafeBytes { bytes in
      do throws(ConfigurationError) {
        return .success(try Configuration(parsing: bytes, surroundings))
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let configuration): return configuration
    case .failure(let error): throw .refused(path, error)
    }
  }

  /// Applies a configuration that was read.
  func apply(
    _ configuration: Configuration, to engine: Engine, now: Instant
  ) throws(ConfigurationFileError) -> ConfigurationChanges {
    do {
      return try engine.configure(configuration, now: now)
    } catch {
      throw .refused(path, error)
    }
  }

  /// The limits of the file and the command line combined.
  func limits(_ configuration: Configuration) -> Limits {
    configuration.effectiveLimits(surroundings)
  }
}

/// The reason why the configuration cannot be used.
enum ConfigurationFileError: Error, CustomStringConvertible {
  case unreadable(SystemError)
  case refused(String, ConfigurationError)

  var description: String {
    switch self {
    case .unreadable(let error): "\(error)"
    case .refused(let path, let error): "\(path):\(error)"
    }
  }
}
