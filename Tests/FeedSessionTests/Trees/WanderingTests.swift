import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import ReferenceModel

/// Watchers that miss structural changes and catch up by one composed delta, compared with the reference.
struct WanderingTests {
  @Test(arguments: UInt64(1)...10)
  func composedDeltasLeadToTheSameMirror(_ seed: UInt64) {
    var limits = Limits()
    limits.maxQueue = 600
    if seed % 2 == 0 { limits.historyBytes = 3000 }
    let world = TreeWorld(seed: seed &+ 0x5EED, limits: limits)
    world.keepsPast = true
    let wanderers = (0..<4).map { _ in TreeWanderer(world) }
    for step in 0..<300 {
      do {
        try world.step()
        try wanderers[world.generator.below(4)].act()
        for wanderer in wanderers { try wanderer.receive() }
        guard step % 20 == 19 else { continue }
        if step % 100 == 99 { for wanderer in wanderers where wanderer.isStopped { wanderer.resume() } }
        // All throttle intervals have passed then.
        world.harness.advance(seconds: 0.5)
        for wanderer in wanderers {
          try wanderer.receive()
          try wanderer.compare()
        }
      } catch {
        Issue.record("seed \(seed), step \(step): \(error)")
        return
      }
    }
    let events = wanderers.reduce(into: [:]) { $0.merge($1.events) { $0 + $1 } }
    expect(events["resumed", default: 0] > 0 && events["deltas", default: 0] > 0, "\(events)")
  }
}
