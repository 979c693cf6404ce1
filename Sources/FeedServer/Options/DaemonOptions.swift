import FeedModel
import FeedStorage
import FeedSystem

/// What the command line of `feedd` asks for.
public struct DaemonOptions: Sendable, Equatable {
  /// `--socket`, or the default of the environment.
  public var socketPath: String
  /// Whether `--socket` was given.
  public var namesSocket = false
  /// `--state`: where a durable daemon keeps its state; nil: the default of the environment.
  public var stateDirectory: String?
  public var durability = Durability.process
  /// `--image-interval` and what else there is to images.
  public var images = ImagePolicy()
  /// `--config`: definitions, access rules and limits.
  public var configurationPath: String?
  public var limits = Limits()
  /// The names of the limits that the command line sets.
  public var givenLimits: Set<String> = []
  /// The longest time between SIGTERM and the end.
  public var drainTimeout: Duration = .seconds(5)
  public var logLevel = LogLevel.info

  /// How durably a commit is stored before it is published.
  public enum Durability: String, Sendable, CaseIterable {
    /// Not at all.
    case memory
    /// It survives the daemon.
    case process
    /// It survives a loss of power.
    case disk
  }
}
