import FeedJSON
import FeedModel

/// The results of the operations of a transaction, as entries of the array in its answer.
///
/// A change of rows of managed feeds is another one in replay, which must refuse the same transactions. So its list does not count, and
/// is answered as counts if the answer would not fit in a frame with it.
struct OperationResults: ~Copyable {
  /// A result in `text` and the counts that may take its place.
  private struct Replaceable {
    let range: Range<Int>
    let counts: [UInt8]
  }

  private var text = ByteBuffer()
  private var replaceable: [Replaceable] = []
  /// The bytes that decide whether the answer fits: also those of names that are withheld, because replay withholds nothing.
  private(set) var counted = 0

  /// Appends the counts of the change of the last operation.
  mutating func appendCounts(of commit: Commit) {
    let start = begin()
    commit.withResult { change, _ in text.append(countsOf: change) }
    text.append(UInt8(ascii: "}"))
    count(from: start, commit)
  }

  /// Appends the lists of the change of the last operation.
  /// - Parameter room: the bytes that the answer has for results.
  mutating func append(_ commit: Commit, namesSections: Bool, room: Int) {
    let start = begin()
    commit.withResult { text.append($0, step: $1) }
    text.append(UInt8(ascii: "}"))
    count(from: start, commit)
    if !namesSections {
      text.truncate(to: start)
      _ = begin()
      commit.withResult { text.append($0, namesSections: false, step: $1) }
      text.append(UInt8(ascii: "}"))
    }
    if commit.isRepeatable { return }
    var counts = ByteBuffer()
    counts.append(start > 0 ? ",{" : "{")
    commit.withResult { change, _ in counts.append(countsOf: change) }
    counts.append(UInt8(ascii: "}"))
    if text.count > room {
      text.truncate(to: start)
      text.append(counts.bytes)
    } else {
      replaceable.append(Replaceable(range: start..<text.count, counts: Array(counts.bytes)))
    }
  }

  private mutating func begin() -> Int {
    defer { text.append(text.count > 0 ? ",{" : "{") }
    return text.count
  }

  /// The bytes that each operation counts at least, which the counts of a change take.
  private static let bytesOfCounts = 256

  private mutating func count(from start: Int, _ commit: Commit) {
    counted += commit.isRepeatable ? text.count - start : Self.bytesOfCounts
  }

  /// Appends the entries that fit to an answer.
  func append(to out: inout ByteBuffer, room: Int) {
    var end = 0
    if text.count > room {
      for result in replaceable {
        out.append(UnsafeRawBufferPointer(rebasing: text.bytes[end..<result.range.lowerBound]))
        result.counts.withUnsafeBytes { out.append($0) }
        end = result.range.upperBound
      }
    }
    out.append(UnsafeRawBufferPointer(rebasing: text.bytes[end...]))
  }
}
