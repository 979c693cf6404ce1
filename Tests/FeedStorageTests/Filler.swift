import FeedEngine
import FeedModel
import FeedSystem
import TestSupport

@testable import FeedStorage

/// Fills an engine from a store.
final class Filler: RecoveryTarget {
  let engine: Engine

  init(_ engine: Engine) {
    self.engine = engine
  }

  var catalog: Catalog { engine.catalog }
  func use(_ limits: Limits) { engine.use(limits) }
  func replay(_ batch: LogBatch, rules: Int?) throws { try engine.replay(batch, rules: rules) }
}

extension FileLog {
  /// Stores the same requests several times, a batch each, without executing them. Call it once, after `start`.
  func store(_ frames: [UInt8], times count: UInt64 = 1, revision: UInt64 = 0) throws {
    for number in 1...count {
      try frames.withUnsafeBytes { frames in
        append(LogBatch(number: number, at: Instant(nanoseconds: 1), revision: revision, frames: frames))
        var event = nextEvent()
        while event == nil, let descriptor {
          _ = try Readiness.readable.wait(on: descriptor)
          event = nextEvent()
        }
        guard case .stored(number)? = event else { throw TestFailure("batch \(number): \(event as Any)") }
      }
    }
  }
}

extension Engine {
  /// The content of an image of the state without the extent of the recent changes. A recovery renumbers arrivals, so only
  /// their order is included.
  var content: [String] {
    var cutter = ImageCutter(catalog.makeImage())
    var lines = ["revision \(catalog.revision)"]
    var elements: [(arrival: UInt64, line: String)] = []
    while true {
      let part = cutter.next()
      for item in part.items {
        switch item {
        case .feed(let head): lines.append("\(head)")
        case .element(let arrival, let changed, let text):
          elements.append((arrival, "\(changed) " + String(decoding: part.bytes(text), as: UTF8.self)))
        case .rows(let section, let first, let numbers):
          lines.append("\(section) \(first) " + String(decoding: part.bytes(numbers), as: UTF8.self))
        case .history: break
        case .feedEnd:
          lines += elements.map(\.line)
          lines += elements.sorted { $0.arrival < $1.arrival }.map(\.line)
          elements.removeAll()
        }
      }
      if part.isLast { return lines }
    }
  }
}
