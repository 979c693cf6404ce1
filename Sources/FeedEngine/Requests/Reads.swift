import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// Methods that read feeds.
extension Engine {
  func get(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    try parameters.refuseBoth("at", "id")
    if let id = parameters.member("id") { return try get(id, in: feed, reply) }
    guard parameters.member("at") != nil else {
      throw Parameters.refuse("at", "is missing: give \"at\" as [section, row], or \"id\"")
    }
    let (section, row) = try parameters.path("at")
    try checkNotNegative(section, row, in: feed)
    let isThere = section < feed.sectionCount && row < feed.section(at: section).count
    let found = isThere ? feed.section(at: section).row(at: row) : nil
    try answer(reply, found, of: feed) { out in
      out.append("[", integer: section)
      out.append(",", integer: row)
      out.append(UInt8(ascii: "]"))
    }
  }

  /// Answers with the row that was found, if any. `place` writes where.
  @inline(__always)
  private func answer(
    _ reply: Reply, _ found: Row?, of feed: Feed, at place: (inout ByteBuffer) -> Void
  ) throws(FeedError) {
    try answer(reply) { out in
      out.append("\"element\":")
      if let found { out.append(found.text) } else { out.append("null") }
      out.append(",\"type\":")
      out.append(type: found?.type ?? UnsafeRawBufferPointer(start: nil, count: 0))
      out.append(",\"at\":")
      place(&out)
      out.append(found == nil ? ",\"found\":false" : ",\"found\":true")
      out.append(",\"revision\":", integer: feed.revision)
    }
  }

  /// A negative index is an error; an index past the end reads as empty.
  private func checkNotNegative(_ section: Int, _ row: Int, in feed: Feed) throws(FeedError) {
    if section < 0 {
      throw .indexOutOfRange(feed: feed.name, index: section, count: feed.sectionCount, what: .section)
    }
    if row < 0 {
      let found = section < feed.sectionCount ? feed.section(at: section) : nil
      throw .indexOutOfRange(feed: feed.name, place: found?.name, index: row, count: found?.count ?? 0, what: .row)
    }
  }

  private func get(_ id: JSONView, in feed: Feed, _ reply: Reply) throws(FeedError) {
    let found = try catalog.find(id, in: feed)
    try answer(reply, found?.row, of: feed) { $0.append(found?.places ?? []) }
  }

  func range(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    let index = try parameters.integer("section", default: 0)
    guard (0..<feed.sectionCount).contains(index) else {
      throw .indexOutOfRange(feed: feed.name, index: index, count: feed.sectionCount, what: .section)
    }
    let section = feed.section(at: index)
    let first = try parameters.integer("from", default: 0)
    if first < 0 {
      throw .indexOutOfRange(feed: feed.name, place: section.name, index: first, count: section.count, what: .row)
    }
    let from = min(first, section.count)
    let count = min(try parameters.count("count", default: section.count - from), section.count - from)
    let rows = [(section, from..<from + count)]
    // Otherwise later requests, which do not wait for the answer, are executed next; see `mayAnswerInParts`.
    if reply.session.line.isEmpty, areMany(count) || areLong(rows, of: feed, count: count) {
      let snapshot = feed.makeSnapshot(ofSection: index, rows: from..<from + count)
      snapshot.charge(to: reply.session.snapshots)
      return start(
        RowsJob(RowsAnswer(rangeOf: feed), of: snapshot, for: reply, maxFrame: limits.maxFrame), for: reply, parameters)
    }
    try answer(reply, RowsAnswer(rangeOf: feed), rows)
  }

  func snapshot(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    let rows = areMany(feed.count) ? [] : feed.sections.map { ($0, 0..<$0.count) }
    if areMany(feed.count) || areLong(rows, of: feed, count: feed.count) {
      let snapshot = feed.makeSnapshot(chargedTo: reply.session.snapshots)
      let job = RowsJob(RowsAnswer(sectionsOf: feed), of: snapshot, for: reply, maxFrame: limits.maxFrame)
      return start(job, for: reply, parameters)
    }
    try answer(reply, RowsAnswer(sectionsOf: feed), rows)
  }

  /// Whether an answer with so many rows is written in parts.
  private func areMany(_ rows: Int) -> Bool { rows > RowsJob.fewRows || longAnswers.queries.isEager }

  /// Whether an answer with few rows is written in parts because these are long. O(1) unless the feed has long elements or shows
  /// others; O(rows) then.
  private func areLong(_ rows: [(section: any FeedSection, rows: Range<Int>)], of feed: Feed, count: Int) -> Bool {
    if let longest = feed.kind.rows?.longestElement, longest * count <= RowsJob.fewBytes { return false }
    var bytes = 0
    for (section, rows) in rows where bytes <= RowsJob.fewBytes {
      section.forEach(in: rows) { bytes += $0.text.count }
    }
    return bytes > RowsJob.fewBytes
  }

  /// Writes the answer to `range` or `snapshot` at once. Stops early if it is too long; it is refused then.
  private func answer(
    _ reply: Reply, _ rows: consuming RowsAnswer, _ sections: [(section: any FeedSection, rows: Range<Int>)]
  ) throws(FeedError) {
    try answer(reply) { out in
      let end = out.count + limits.maxFrame
      rows.begin(&out)
      for (index, (section, range)) in sections.enumerated() where out.count <= end {
        rows.beginSection(index, &out)
        withUnsafeMutablePointer(to: &out) { out in
          section.forEach(in: range) { row in
            if out.pointee.count + rows.typesSize <= end { rows.append(row, to: &out.pointee) }
          }
        }
        rows.endSection(&out)
      }
      rows.end(&out)
    }
  }

  func query(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    let text = try expression(parameters, "path", "a JSONPath (RFC 9535)")
    if parameters.member("path")?.hasLoneSurrogate == true {
      throw Parameters.refuse("path", KnownMembers.loneSurrogate)
    }
    let path: JSONPath
    var size = limits.maxFilterBytes
    defer { outbox.shares.add(work: WorkCost.compiling(bytes: size), of: reply.session.peer.uid) }
    do {
      path = try JSONPath(parsing: text, atMost: limits.maxFilterBytes)
      size = path.size
    } catch {
      if error.isTooLarge { throw limits.tooLargeFilter("\"path\" takes") }
      throw .badQuery(member: "path", text: text, offset: error.offset, reason: error.message)
    }
    // The snapshot reads no rows, but looks at each section.
    outbox.shares.add(work: feed.sectionCount, of: reply.session.peer.uid)
    let job = QueryJob(
      path, over: feed, isSingle: (feed.kind as? ListKind)?.shape == .single,
      places: try parameters.bool("places", default: false), limits: limits, chargedTo: reply.session.snapshots,
      on: longAnswers.queries, of: reply.session.peer.uid)
    start(job, for: reply, parameters)
  }

  /// Returns a path or a filter. One that is too long is not decoded.
  /// - Throws: `limitExceeded`, `invalidParams`.
  func expression(_ parameters: Parameters, _ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    let length = try parameters.required(name, what).text.count
    if length > limits.maxPathBytes {
      throw limits.exceeded(\.maxPathBytes, "\"\(name)\" has \(grouped(length)) bytes; shorten it")
    }
    return try parameters.string(name, what)
  }
}
