import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// `query`: a JSONPath over the array of a feed's elements in flattened order, as of one revision.
///
/// A path that looks at elements one by one is evaluated so, in parts. Any other needs the whole array as one document:
/// see `DocumentQueryJob`.
final class QueryJob: Job {
  private let path: ElementwisePath
  private let source: QuerySource
  private var rows: ElementSelection
  /// The row that the path looks at next; nil when there is none left.
  private var wanted: Int?
  /// The rows come from the last to the first: each one's nodes go before those that are there.
  private let isBackwards: Bool
  private var scanner: JSONScanner
  private var nodes: QueryNodes
  private var row = 0

  init(_ path: ElementwisePath, over source: QuerySource) {
    self.path = path
    self.source = source
    rows = path.selection(count: source.count)
    wanted = rows.next()
    var ahead = rows
    isBackwards = ahead.next().map { [wanted] in $0 < wanted ?? 0 } ?? false
    if isBackwards {
      let all = ([wanted].compactMap { $0 } + Array(rows)).reversed()
      reversed = Array(all)
      wanted = reversed.first
    }
    scanner = JSONScanner(maxDepth: source.limits.maxDepth)
    nodes = QueryNodes(limits: source.limits)
  }

  /// The rows of a backward selection, forwards; empty for others.
  private var reversed: [Int] = []
  private var nextReversed = 1

  func advance(budget: Int) throws(FeedError) -> Bool {
    var left = budget
    // Rows are read in order; those that the path does not look at are stepped over.
    while wanted != nil && left > 0 {
      let read = try look(max: left)
      if read == 0 { break }
      left -= read
    }
    return wanted == nil || source.isFinished
  }

  private func look(max: Int) throws(FeedError) -> Int {
    var failure: FeedError?
    let read = source.next(max: max) { element in
      defer { row += 1 }
      guard row == wanted, failure == nil else { return }
      do throws(FeedError) { try evaluate(element) } catch { failure = error }
      wanted = nextWanted()
    }
    if let failure { throw failure }
    return read
  }

  private func nextWanted() -> Int? {
    if !isBackwards { return rows.next() }
    defer { nextReversed += 1 }
    return nextReversed < reversed.count ? reversed[nextReversed] : nil
  }

  private func evaluate(_ text: UnsafeRawBufferPointer) throws(FeedError) {
    guard let element = try? scanner.scan(text) else { return }
    var steps = source.limits.maxQuerySteps
    nodes.beginGroup()
    path.evaluate(element, steps: &steps) { nodes.append($0) }
    try nodes.check(steps: steps)
  }

  func appendResult(to out: inout ByteBuffer) {
    nodes.appendResult(to: &out, revision: source.revision, backwards: isBackwards)
  }
}
