import CLinux

/// Two descriptors, closed on exec: what is written into one is read from the other.
public struct Pipe: ~Copyable {
  /// What is read from; nil once it was closed or given away.
  public var reading: Descriptor?
  /// What is written to; nil once it was closed or given away.
  public var writing: Descriptor?

  public init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else { throw .last("make a pipe") }
    reading = Descriptor(owning: ends[0])
    writing = Descriptor(owning: ends[1])
  }

  /// The number to read from; -1 once that end was closed or given away.
  public var readingNumber: Int32 { Self.number(reading) }

  /// The number to write to; -1 once that end was closed or given away.
  public var writingNumber: Int32 { Self.number(writing) }

  private static func number(_ end: borrowing Descriptor?) -> Int32 {
    switch end {
    case .some(let descriptor): descriptor.rawValue
    case .none: -1
    }
  }
}
