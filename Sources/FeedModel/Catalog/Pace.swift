import FeedJSON
import FeedQuery

/// Lets a long computation stop between two of its steps, so that its thread can do other work.
///
/// Loops over many rows call ``spend(_:)`` with each step: one subtraction without a function to stop. That may run
/// other work only if it changes nothing that the computation uses.
///
///     pace.begin(units: 100) { waitForNextSlice(); return 100 }
///     for row in rows { pace.spend(); judge(row) }
///     pace.end()
///
/// Invariant: without a function to stop, so many units are left that they cannot be spent.
public final class Pace {
  private var left = Int.max
  private var stop: (() -> Int)?
  /// The number of filter steps that views took to follow their sources. Most of them are charged to no request.
  private(set) var stepsOfViews: UInt64 = 0

  /// Creates a pace that does not stop.
  public init() {}

  @inline(__always)
  var isActive: Bool { stop != nil }

  /// Lets the evaluation of a path or a filter stop; nil if the computation does not stop.
  @inline(__always)
  var evaluations: EvaluationPace? { isActive ? evaluationPace : nil }

  private lazy var evaluationPace = EvaluationPace(every: Self.stepsPerStop) { [unowned self] in
    spend(Self.stepsPerStop / 64)
    return true
  }
  private static let stepsPerStop = 2 << 10

  /// From now on, calls `stop` when about `units` units of work are done. It returns the units until the next call.
  /// - Parameter units: a unit is about a microsecond of work.
  public func begin(units: Int, stop: @escaping () -> Int) {
    assert(self.stop == nil, "the computation before has not ended")
    self.stop = stop
    left = units
  }

  public func end() {
    stop = nil
    left = .max
  }

  /// Counts work that was done, and stops if enough was done. No structure that others read may be half changed.
  @inline(__always)
  func spend(_ units: Int = 1) {
    left &-= units
    if left < 0 { rest() }
  }

  /// Counts the work on an element or an identity. That of its identity and its sort keys grows with its text: the digits of a number
  /// take about 10 ns each.
  @inline(__always)
  func spend(_ units: Int = 1, onText text: UnsafeRawBufferPointer) { spend(units &+ text.count >> 8) }

  /// Counts a definition with so many bytes, which was parsed and is compiled next, and stops as `spend` does.
  public func didParse(definition bytes: Int) { spend(bytes / 16) }

  /// Counts an element that a view judged.
  @inline(__always)
  func didJudge(_ text: UnsafeRawBufferPointer, steps: Int) {
    stepsOfViews &+= UInt64(max(0, steps))
    spend(2 &+ steps / 64, onText: text)
  }

  /// Forgets the steps that views took to be restored: an image does not save them.
  func didRestoreViews() { stepsOfViews = 0 }

  /// Counts about a thousand entries of changes that were composed.
  public func didCompose() { spend(64) }

  /// Counts an element that was found by its identity, which `text` has.
  public func didFindElement(_ text: UnsafeRawBufferPointer) { spend(onText: text) }

  /// Counts eight moves that were compared.
  public func didCompareMoves() { spend() }

  /// Counts up to a thousand rows of a snapshot that were passed over.
  public func didSkipRows() { spend(16) }

  /// Counts 64 members of objects that were merged, or 64 conditions that were checked.
  public func didReadMembers() { spend(32) }

  /// Counts a thousand elements of an array that were read, such as paths.
  public func didReadElements() { spend(32) }

  /// Counts bytes of a message that were written, from some rows.
  public func didWrite(bytes: Int) { spend(16 &+ bytes >> 11) }

  /// Counts the paths of a thousand rows that were written.
  public func didWriteRows() { didWrite(bytes: 16 << 10) }

  /// Stops. Reads that run meanwhile, perhaps of a structure that has this pace, do not stop.
  private func rest() {
    left = .max
    guard let stop else { return }
    self.stop = nil
    left = stop()
    self.stop = stop
  }
}

extension Array {
  /// The number of elements that are written to untouched memory between two stops.
  private static var chunk: Int { 1024 }

  /// Creates an array of one value, and lets `pace` stop in between.
  init(repeating value: Element, count: Int, _ pace: Pace) {
    self.init()
    reserveCapacity(count)
    while self.count < count {
      append(contentsOf: repeatElement(value, count: Swift.min(Self.chunk, count - self.count)))
      pace.spend(4)
    }
  }

  /// Returns what `transform` makes of each element, and lets `pace` stop in between.
  func map<Result>(_ pace: Pace?, _ transform: (Element) -> Result) -> [Result] {
    if isEmpty { return [] }
    var results: [Result] = []
    results.reserveCapacity(count)
    for element in self {
      results.append(transform(element))
      if results.count % Self.chunk == 0 { pace?.spend(4) }
    }
    return results
  }

  /// Appends elements, and lets `pace` stop in between.
  mutating func append(contentsOf elements: some RandomAccessCollection<Element>, _ pace: Pace) {
    if elements.count > capacity - count { reserveCapacity(Swift.max(2 * capacity, count + elements.count)) }
    for element in elements {
      append(element)
      if count % Self.chunk == 0 { pace.spend(4) }
    }
  }

  /// Fewer elements are sorted without a stop.
  private static var many: Int { 256 }

  /// Sorts the elements, plain values, and lets `pace` stop between comparisons. Equal elements keep their order.
  @inline(__always)
  mutating func sort(_ pace: Pace?, by areInIncreasingOrder: (Element, Element) -> Bool) {
    guard count >= Self.many, let pace, pace.isActive else { return sort(by: areInIncreasingOrder) }
    if isSorted(pace, by: areInIncreasingOrder) { return }
    withUnsafeMutableBufferPointer { elements in
      for start in stride(from: 0, to: elements.count, by: Self.many) {
        let run = start..<Swift.min(start + Self.many, elements.count)
        var part = UnsafeMutableBufferPointer(rebasing: elements[run])
        part.sort(by: areInIncreasingOrder)
        pace.spend(run.count / 2)
      }
    }
    mergeRuns(pace, by: areInIncreasingOrder)
  }

  @inline(__always)
  private func isSorted(_ pace: Pace, by areInIncreasingOrder: (Element, Element) -> Bool) -> Bool {
    for place in 1..<count {
      if areInIncreasingOrder(self[place], self[place - 1]) { return false }
      if place & 15 == 0 { pace.spend() }
    }
    return true
  }

  /// Merges sorted runs of `many` elements. The sort of the library would copy half of the elements in one step.
  @inline(__always)
  private mutating func mergeRuns(_ pace: Pace, by areInIncreasingOrder: (Element, Element) -> Bool) {
    var merged: [Element] = []
    merged.reserveCapacity(count)
    var width = Self.many
    while width < count {
      for start in stride(from: 0, to: count, by: 2 * width) {
        let (middle, end) = (Swift.min(start + width, count), Swift.min(start + 2 * width, count))
        var (left, right) = (start, middle)
        while left < middle || right < end {
          if right == end || left < middle && !areInIncreasingOrder(self[right], self[left]) {
            merged.append(self[left])
            left += 1
          } else {
            merged.append(self[right])
            right += 1
          }
          if merged.count & 15 == 0 { pace.spend() }
        }
      }
      swap(&self, &merged)
      merged.removeAll(keepingCapacity: true)
      width *= 2
    }
  }
}

extension JSONScanner {
  /// The tokens of a text that are scanned between two looks at the clock.
  private static let tokensAtOnce = 8 << 10
  /// A shorter text is scanned at once.
  private static let longText = 64 << 10

  /// Scans a text like `scan`, and lets `pace` stop in a long one.
  public mutating func scan(_ text: UnsafeRawBufferPointer, _ pace: Pace?) throws(JSONError) -> JSONView {
    guard text.count >= Self.longText, let pace, pace.isActive else { return try scan(text) }
    return try scanInParts(text, pace)
  }

  @inline(never)
  private mutating func scanInParts(_ text: UnsafeRawBufferPointer, _ pace: Pace) throws(JSONError) -> JSONView {
    while true {
      if let view = try scanPart(text, tokens: Self.tokensAtOnce) { return view }
      pace.spend(Self.tokensAtOnce / 64)
    }
  }
}
