/// Counts messages in a stream of bytes by their lengths alone, so that whoever reads much does little.
enum MessageCounter {
  /// Frames of feedd.
  case frames(FrameCounter)
  /// Messages that all have the same length.
  case fixed(FixedCounter)

  /// Messages that came to their end.
  var count: Int {
    switch self {
    case .frames(let counter): counter.count
    case .fixed(let counter): counter.bytes / counter.length
    }
  }

  /// Those of them that are short: answers among deltas.
  var shortCount: Int {
    if case .frames(let counter) = self { return counter.shortCount }
    return 0
  }

  mutating func take(_ bytes: UnsafeRawBufferPointer) {
    switch self {
    case .frames(var counter):
      counter.take(bytes)
      self = .frames(counter)
    case .fixed(var counter):
      counter.bytes += bytes.count
      self = .fixed(counter)
    }
  }
}

/// Counts bytes.
struct FixedCounter {
  let length: Int
  var bytes = 0

  init(length: Int) { self.length = length }
}
