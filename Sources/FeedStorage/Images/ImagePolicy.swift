/// When images are written, and how much of a turn they may take.
public struct ImagePolicy: Sendable, Equatable {
  /// Bytes of journal up to which no image is needed.
  public var journalBytes = 128 << 20
  /// Seconds after which an image is written even if the journal is short.
  public var interval = 6 * 3600
  /// Nanoseconds without a batch after which an image is written that is cheap, so that whoever opens the file sees the
  /// elements.
  public var idle: UInt64 = 1_000_000_000
  /// Bytes of an image that is cheap; a larger one is, when the journal has a quarter of its bytes.
  public var idleBytes = 1 << 20
  /// Nanoseconds that a turn may spend on an image or on deleting what is no longer needed.
  public var step: UInt64 = 2_000_000
  /// Bytes of image and journal up to which ending cleanly writes an image, so that the next start reads nothing else.
  public var cheapBytes = 64 << 20

  public init() {}
}
