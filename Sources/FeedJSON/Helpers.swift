import Glibc
import Synchronization

/// Formats a quantity for people, in groups of three digits: `999`, `1,000`, `-1,234,567`.
///
/// Counts, sizes, revisions, rows and limits are grouped in every text for people. Names that happen to be numbers (user
/// and process IDs, connections, rows of the journal) and places in a file are not, and nothing that programs read is.
package func grouped(_ number: some BinaryInteger) -> String {
  let digits = "\(number.magnitude)".utf8
  var text = number < 0 ? "-" : ""
  for (place, digit) in digits.enumerated() {
    if place > 0, (digits.count - place) % 3 == 0 { text += "," }
    text.unicodeScalars.append(Unicode.Scalar(digit))
  }
  return text
}

/// Formats a quantity with its noun: `1 row`, `2,000 rows`.
/// - Parameter plural: the noun for other numbers than one; by default with an `s`.
package func counted(_ count: some BinaryInteger, _ noun: String, plural: String? = nil) -> String {
  "\(grouped(count)) \(count == 1 ? noun : plural ?? noun + "s")"
}

/// Formats a number with leading zeros, so that it has at least `width` digits: `007`, or `00ff` with radix 16.
package func padded(_ number: some BinaryInteger, to width: Int, radix: Int = 10, uppercase: Bool = false) -> String {
  let digits = String(number, radix: radix, uppercase: uppercase)
  return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

extension String {
  package var quotedAsJSON: String { ByteBuffer.text { $0.appendJSONString(self) } }

  /// The text in one line that is safe to print: each character that could control a terminal is replaced by U+FFFD.
  ///
  /// Messages quote names and values that other programs sent.
  package var inLine: String {
    guard unicodeScalars.contains(where: \.controlsTerminal) else { return self }
    return String(UnicodeScalarView(unicodeScalars.map(\.inLine)))
  }
}

extension Unicode.Scalar {
  /// Whether the character could control a terminal: control characters, line separators, and characters that change the
  /// direction of text.
  package var controlsTerminal: Bool {
    switch value {
    case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  /// The character in a line of text for people: U+FFFD for one that could control a terminal.
  package var inLine: Unicode.Scalar { controlsTerminal ? "\u{FFFD}" : self }
}

extension Range<Int> {
  /// Returns the first index for which `belongsBefore` is false; `upperBound` if there is none. This is the binary search of
  /// the package. O(log count) calls.
  /// - Precondition: no index for which `belongsBefore` is false precedes one for which it is true.
  ///
  ///     let place = paths.indices.partitionPoint { paths[$0] < path }
  @inlinable @inline(__always)
  public func partitionPoint(_ belongsBefore: (Int) throws -> Bool) rethrows -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = low &+ (high &- low) / 2
      if try belongsBefore(middle) { low = middle &+ 1 } else { high = middle }
    }
    return low
  }
}

/// Suggestions for misspelled names.
public enum Spelling {
  /// Returns the edit distance of two words: the minimum number of bytes to insert, delete or replace, or of neighbours to
  /// swap (optimal string alignment). Only the first 64 bytes of each word count. O(n·m).
  public static func distance(_ first: String, _ second: String) -> Int {
    let (source, target) = (Array(first.utf8.prefix(64)), Array(second.utf8.prefix(64)))
    // Row i holds the distances from the first i bytes of the source to each prefix of the target.
    var rowBeforeLast: [Int] = []
    var lastRow = Array(0...target.count)
    for i in source.indices {
      var row = [i + 1]
      for j in target.indices {
        var best = min(lastRow[j] + (source[i] == target[j] ? 0 : 1), lastRow[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, source[i] == target[j - 1], source[i - 1] == target[j] {
          best = min(best, rowBeforeLast[j - 1] + 1)
        }
        row.append(best)
      }
      (rowBeforeLast, lastRow) = (lastRow, row)
    }
    return lastRow[target.count]
  }

  /// Returns the known words that begin with `word`, or whose distance to it is close to the smallest, nearest first.
  public static func similar(to word: String, in known: [String]) -> [String] {
    let scored = known.map { ($0, distance(word, $0)) }
    let close = scored.filter { name, distance in
      let shorter = min(word.count, name.count)
      return distance <= max(1, shorter / 3) && distance < shorter || !word.isEmpty && name.hasPrefix(word)
    }
    let nearest = close.map(\.1).min() ?? 0
    let best = close.filter { $0.1 <= nearest + 1 || !word.isEmpty && $0.0.hasPrefix(word) }
    return best.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map(\.0)
  }

  /// Returns `; did you mean inbox or inbox/urgent?`, or `otherwise` if no known word is similar.
  /// - Parameter prefix: what each suggestion begins with.
  public static func suggestion(
    for word: String, in known: [String], prefix: String = "", otherwise: String = ""
  ) -> String {
    let similar = similar(to: word, in: known).prefix(3).map { prefix + $0 }
    return similar.isEmpty ? otherwise : "; did you mean \(similar.joined(separator: " or "))?"
  }

  /// Returns the known name with the smallest distance from `name`, ignoring case; nil if more than about a third of the
  /// bytes differ.
  public static func nearest(to name: String, in known: [String]) -> String? {
    let wanted = name.lowercased()
    let ranked = known.map { (name: $0, distance: distance(wanted, $0.lowercased())) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
    return best.distance <= max(1, min(wanted.utf8.count, best.name.utf8.count) / 3 + 1) ? best.name : nil
  }
}

#if THREAD_SANITIZER
  /// A value that a mutex guards. The thread sanitizer knows this mutex; it does not see those of `Synchronization`, whose
  /// library is not built with it.
  public struct Guarded<Value>: ~Copyable, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    public init(_ value: consuming sending Value) {
      pthread_mutex_init(mutex, nil)
      self.value.initialize(to: value)
    }

    deinit {
      pthread_mutex_destroy(mutex)
      value.deinitialize(count: 1)
      mutex.deallocate()
      value.deallocate()
    }

    /// Locks the mutex, calls `body` with the value, and unlocks.
    public borrowing func withLock<R, E>(_ body: (inout sending Value) throws(E) -> sending R) throws(E) -> sending R {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      nonisolated(unsafe) let value = value
      return try body(&value.pointee)
    }

    /// Calls `body` with the value if the mutex is free; returns nil otherwise.
    public borrowing func withLockIfAvailable<R, E>(
      _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R? {
      guard pthread_mutex_trylock(mutex) == 0 else { return nil }
      defer { pthread_mutex_unlock(mutex) }
      nonisolated(unsafe) let value = value
      return try body(&value.pointee)
    }
  }
#else
  public typealias Guarded = Mutex
#endif
