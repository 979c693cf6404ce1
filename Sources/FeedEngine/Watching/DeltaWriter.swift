import FeedChange
import FeedJSON
import FeedModel
import FeedWire

extension Engine: CommitObserver {
  /// The buffer of a delta that lists more rows does not grow step by step, which would copy it each time.
  private static let manyRows = LongDelta.fewRows
  /// The bytes of a delta, for all watches that get one of their own, after which the others get theirs in later turns. Also the bytes
  /// of a commit, for all feeds with the counts of very many sections.
  private static let bytesAtOnce = 1 << 20

  /// Encodes the delta once for all watches in step, and once for each other live watch. Other watches catch up later. A
  /// delta with many rows is encoded when all feeds have their new state.
  public func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication) {
    guard let channel = feed.watching else { return }
    if access.isBehind(catalog.structureVersion) { holdBackFromHidden(channel) }
    tell(channel, change, publication)
    for other in channel.others {
      if other.isCounting { tell(other, change, publication) } else { tellIdentities(other, change, publication) }
    }
  }

  /// Encodes the delta of one row for all watches in step. Other watches are told as of any change.
  public func didChange(_ feed: Feed, by row: ChangeOfOne, from: UInt64, _ element: ElementText?) {
    feed.withWatching { channel in
      guard channel.isOnlyChannel, channel.solo.isEmpty, !access.isBehind(catalog.structureVersion) else {
        return didChange(feed, by: Change(row), Publication(of: row, from: from, element))
      }
      if !channel.inStep.isEmpty { didEncode(appendDelta(of: row, channel, from: from, element), of: channel) }
    }
  }

  /// Writes the delta of one row for watches in step, just as the other function. Returns an empty range if it does not fit a frame.
  private func appendDelta(
    of row: ChangeOfOne, _ channel: FeedChannel, from: UInt64, _ element: ElementText?
  ) -> Range<Int> {
    let buffer = channel.buffer
    let frame = beginDelta(in: buffer, channel, from: from, to: channel.feed.revision)
    buffer.bytes.append(UInt8(ascii: ","))
    buffer.bytes.append(row)
    buffer.bytes.append(",\"elements\":[")
    if let element, let path = row.shown {
      buffer.bytes.append(element.text)
      if channel.hasTypes(asOf: catalog.structureVersion) {
        buffer.bytes.append("],\"types\":[")
        buffer.bytes.append(type: channel.feed.type(at: path))
      }
    }
    buffer.bytes.append(UInt8(ascii: "]"))
    return endDelta(in: buffer, frame, isEnd: false)
  }

  /// The commit under way may show rows that some watchers may not read: these are told nothing, and closed in this turn.
  private func holdBackFromHidden(_ channel: FeedChannel) {
    for watch in channel.allLive where !mayRead(channel.feed, watch.session.peer) {
      fallBehind(watch)
    }
  }

  func tell(_ channel: FeedChannel, _ change: borrowing Change, _ publication: Publication) {
    if isLong(change, of: channel) { return tellInParts(channel, change, publication) }
    var bytes = 0
    let hasManyCounts = channel.hasManyCounts(watches.catchUps.fewRows) && !channel.feed.isGone
    if hasManyCounts {
      bytes = watches.bytesOfCounts(in: channel.feed.revision)
      if bytes > Self.bytesAtOnce { channel.inStep.forEach(putOff) }
    }
    if !channel.inStep.isEmpty {
      let delta = appendDelta(to: channel.buffer, channel, from: publication.from, change, publication)
      bytes &+= hasManyCounts ? delta.count : 0
      didEncode(delta, of: channel)
    }
    for watch in channel.solo {
      if watch.session.output.exceeds(limits.maxQueue) || watch.throttle > 0 && now < watch.nextDelta
        || bytes > Self.bytesAtOnce
      {
        fallBehind(watch)
        continue
      }
      let range = appendDelta(to: answers, channel, from: watch.queuedRevision, change, publication)
      bytes &+= range.count
      if range.isEmpty {
        cutOff(watch)
      } else {
        tell(watch, answers, range)
        joinIfUpToDate(watch)
      }
    }
    if hasManyCounts { watches.didWriteCounts(bytes, in: channel.feed.revision) }
    if bytes > Self.bytesAtOnce { channel.keepHint(of: publication) }
  }

  /// Lets a watch in step get the delta of the commit under way later, after those that it was not given yet.
  private func putOff(_ watch: Watch) {
    giveRest(watch)
    if watch.isLive { fallBehind(watch) }
  }

  /// Counts a delta that was written for all watches in step, which are given it at the end of the turn. An empty one did not fit
  /// a frame.
  private func didEncode(_ delta: Range<Int>, of channel: FeedChannel) {
    if delta.isEmpty {
      for watch in channel.inStep { cutOff(watch) }
      return
    }
    status.counters.deltas &+= UInt64(channel.inStep.count)
    channel.didBuffer()
    watches.didMakeDelta(channel)
  }

  public func didCarrySelection(of feed: Feed) { announceSelection(of: feed) }

  /// Ends the live watches of a feed that was undefined, after its last delta. Other watches end after they have sent
  /// the end of the feed. They keep its history until then, and each user is charged for it once.
  public func didEnd(_ feed: Feed) {
    guard let channel = feed.watching else { return }
    for watch in channel.allLive where watch.isLive {
      // A watch whose connection is full falls behind.
      giveRest(watch)
      if watch.isLive { end(watch) }
    }
    releaseIfGone(channel)
    if channel.totalWatchCount == 0 { return }
    channel.keepRemains()
    let payers = Payers()
    for session in sessions.all {
      guard let watch = session.watches[feed.name], watch.channel.feed === channel.feed else { continue }
      if payers.add(watch) { chargeForHistory(watch) }
    }
  }

  /// Queues a delta that was just encoded for a solo watch.
  func tell(_ watch: Watch, _ source: TurnBuffer, _ range: Range<Int>) {
    queue(watch.session, source, from: range.lowerBound, for: watch)
    didTell(watch, watch.channel.feed.revision)
  }

  /// Records that a delta to a revision was queued for a watch alone, or for some that are not in step.
  func didTell(_ watch: Watch, _ revision: UInt64) {
    watch.queuedRevision = revision
    watch.told.at = now
    if watch.throttle > 0 { watch.nextDelta = now.adding(nanoseconds: watch.throttle) }
    status.counters.deltas &+= 1
  }

  /// Writes a delta frame, as `write` of a ``LongDelta`` would. Returns an empty range if it does not fit a frame.
  /// - Parameter publication: nil for a composed change, which has a `hint` only if it is that of one commit.
  func appendDelta(
    to buffer: TurnBuffer, _ channel: FeedChannel, from: UInt64, _ change: borrowing Change,
    _ publication: Publication? = nil, hint: [UInt8]? = nil
  ) -> Range<Int> {
    let start = buffer.bytes.count
    let hasManyRows = !channel.isCounting && change.size > Self.manyRows
    if hasManyRows && isFarTooLarge(change, channel.feed) { return start..<start }
    let frame = beginDelta(in: buffer, channel, from: from, to: channel.feed.revision)
    if channel.isCounting {
      buffer.bytes.append(sectionsOf: change)
      buffer.bytes.append(countsOf: channel.feed)
    } else {
      if hasManyRows { buffer.bytes.reserve(limits.maxFrame) }
      buffer.bytes.append(UInt8(ascii: ","))
      buffer.bytes.append(change)
      appendElements(
        to: &buffer.bytes, channel, change, publication?.updatedElement,
        end: start + Frame.headerLength + limits.maxFrame)
      if let identities = channel.identities {
        let removed =
          publication == nil
          ? identities.past(since: from)?.removed(by: change, from: from, to: channel.feed.revision, in: channel.feed)
          : identities.removedLast
        buffer.bytes.append(removed, end: start + Frame.headerLength + limits.maxFrame)
      }
    }
    if let hint = publication?.hint ?? hint { buffer.bytes.append(animation: hint) }
    return endDelta(in: buffer, frame, isEnd: channel.feed.isGone)
  }

  /// Begins a delta frame. Returns its start.
  @inline(__always)
  func beginDelta(in buffer: TurnBuffer, _ channel: FeedChannel, from: UInt64, to revision: UInt64) -> Int {
    let frame = buffer.bytes.beginFrame()
    channel.beginDelta(to: &buffer.bytes)
    revisionText.set(from)
    buffer.bytes.append(revisionText)
    buffer.bytes.append(",\"revision\":")
    revisionText.set(revision)
    buffer.bytes.append(revisionText)
    return frame
  }

  /// Ends a delta frame. Removes it and returns an empty range if it is too long.
  @inline(__always)
  func endDelta(in buffer: TurnBuffer, _ frame: Int, isEnd: Bool) -> Range<Int> {
    if isEnd { buffer.bytes.append(",\"ended\":true") }
    buffer.bytes.endMessage()
    if buffer.bytes.endFrame(at: frame) > limits.maxFrame {
      buffer.bytes.truncate(to: frame)
      return frame..<frame
    }
    return frame..<buffer.bytes.count
  }

  /// Whether a delta with many rows does not fit a frame although only half of its elements counted, if they are as long as
  /// half of those that are looked at. Without the estimate a whole frame would be written to find that out.
  func isFarTooLarge(_ change: borrowing Change, _ feed: Feed) -> Bool {
    let count = change.added.count &+ change.updated.count
    if count == 0 { return false }
    var lengths: [Int] = []
    for sample in 0..<Self.samples {
      let place = count &* sample / Self.samples
      let isAdded = place < change.added.count
      let path = isAdded ? change.added[place] : change.updated[place &- change.added.count]
      lengths.append(feed.element(at: path).text.count)
    }
    lengths.sort()
    return lengths[Self.samples / 2] &* (count / 2) > limits.maxFrame
  }

  /// The elements that are looked at to estimate the length of a delta.
  private static let samples = 64

  /// Appends the elements of `added`, then of `updated`, and their types if rows may have types. Stops early if the
  /// frame would not end before `end`; the frame is then discarded.
  /// - Parameter element: the element of the only row, if it is known.
  private func appendElements(
    to out: inout ByteBuffer, _ channel: FeedChannel, _ change: borrowing Change, _ element: ElementText?, end: Int
  ) {
    let feed = channel.feed
    let isEmpty = change.added.isEmpty && change.updated.isEmpty
    var rows = RowsWriter(withTypes: !isEmpty && channel.hasTypes(asOf: catalog.structureVersion))
    rows.begin(&out)
    append(change.added, of: feed, element, &rows, to: &out, end: end)
    append(change.updated, of: feed, element, &rows, to: &out, end: end)
    rows.end(&out)
  }

  @inline(__always)
  private func append(
    _ paths: [IndexPath], of feed: Feed, _ element: ElementText?, _ rows: inout RowsWriter, to out: inout ByteBuffer,
    end: Int
  ) {
    for path in paths where out.count &+ rows.typesSize <= end {
      let type = rows.withTypes ? feed.type(at: path) : UnsafeRawBufferPointer(start: nil, count: 0)
      rows.append((element ?? feed.element(at: path)).text, type: type, to: &out)
    }
  }
}

extension ByteBuffer {
  /// Appends `,"animation":…`.
  mutating func append(animation hint: [UInt8]) {
    append(",\"animation\":")
    hint.withUnsafeBytes { append($0) }
  }

  /// Appends `,"counts":[…]`: the number of rows of each section.
  mutating func append(counts sections: [any FeedSection]) {
    append(",\"counts\":[")
    for (index, section) in sections.enumerated() {
      if index > 0 { append(UInt8(ascii: ",")) }
      append(integer: section.count)
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends the same for the sections of a feed. Much faster for many sections by value.
  mutating func append(countsOf feed: Feed) {
    append(",\"counts\":[")
    var isFirst = true
    feed.forEachCount { count in
      if !isFirst { append(UInt8(ascii: ",")) }
      isFirst = false
      append(integer: count)
    }
    append(UInt8(ascii: "]"))
  }
}
