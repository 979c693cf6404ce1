/// The way of one feed's row changes up through all the feeds that show its rows, worked out once for as long as no structure
/// changes: what most commits do is then a walk over a list.
///
/// Composed and segmented feeds only shift sections, so that a change goes through any number of them without being copied: each
/// step names the feed whose change it is and by how much its sections are shifted. A slots feed works out a change of its own.
final class Route {
  struct Step {
    let feed: Unmanaged<Feed>
    /// The step whose rows this feed shows; -1 for the feed that the route begins at.
    let source: Int
    /// The step, or -1, whose feed holds in `net` the change that this feed's is but for the shift; itself for slots.
    let holder: Int
    /// Sections of this feed before those of the holder.
    let shift: UInt32
    /// Which of its feed's contents the source is.
    let place: Int
  }

  /// When it was made.
  let version: UInt64
  /// Every feed that shows the rows, each after the one whose rows it shows.
  let steps: [Step]
  /// Whether this leads everywhere. If not, some feed shows the rows twice, and changes must be put together instead.
  let isWhole: Bool

  init(of feed: Feed, version: UInt64) {
    self.version = version
    var found: [(feed: Feed, source: Feed, place: Int)] = []
    var (next, isWhole) = (0, true)
    func add(parentsOf source: Feed) {
      for parent in source.parents where parent.feed.shows(place: parent.place) {
        if found.contains(where: { $0.feed === parent.feed }) { isWhole = false }
        found.append((parent.feed, source, parent.place))
      }
    }
    add(parentsOf: feed)
    while isWhole && next < found.count {
      add(parentsOf: found[next].feed)
      next += 1
    }
    self.isWhole = isWhole
    var steps: [Step] = []
    for (feed, source, place) in isWhole ? found.sorted(by: { $0.feed.rank < $1.feed.rank }) : [] {
      let index = steps.firstIndex { $0.feed.toOpaque() == Unmanaged.passUnretained(source).toOpaque() } ?? -1
      var (holder, shift) = (steps.count, UInt32(0))
      if let offset = feed.shift(ofSectionsAt: place) {
        holder = index < 0 ? -1 : steps[index].holder
        shift = (index < 0 ? 0 : steps[index].shift) &+ UInt32(offset)
      }
      steps.append(
        Step(feed: .passUnretained(feed), source: index, holder: holder, shift: shift, place: place))
    }
    self.steps = steps
  }
}
