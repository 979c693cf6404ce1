@testable import FeedModel

/// The elements behind the handles of a tree, and what snapshots hold of them.
final class Captures {
  /// What stands behind every handle now.
  var elements: [UInt32: Int] = [:]
  /// How often each value was captured and not released.
  private(set) var held: [UInt: Int] = [:]

  func snapshot(of tree: PositionTree) -> PositionSnapshot {
    tree.makeSnapshot(
      capture: { item in
        let payload = UInt(self.elements[item] ?? 0)
        self.held[payload, default: 0] += 1
        return payload
      },
      release: { payload in
        let count = (self.held[payload] ?? 0) - 1
        self.held[payload] = count == 0 ? nil : count
      })
  }

  /// The values of `items` now, as a snapshot taken now must tell them later.
  func values(_ items: [UInt32]) -> [UInt] { items.map { UInt(elements[$0] ?? 0) } }
}
