import FeedChange
import FeedJSON

/// The operations on arrays and singles. Each leaves its change in `result` and, when it throws, nothing changed.
extension Catalog {
  /// Inserts elements (method `insert`; seed 003). Each row counts with the earlier elements of the same call already in;
  /// without `rows` they are appended.
  public func insert(_ feed: ListFeed, elements: [JSONView], at rows: [Int]?) throws(FeedError) {
    try operate(on: feed) { () throws(FeedError) in
      for (place, element) in elements.enumerated() {
        let row = rows?[place] ?? feed.state.rows.count
        try check(row, in: feed, upTo: feed.state.rows.count)
        try feed.state.insert(element, at: row, index: place, now: tick(), &log)
        addStep(&feed.state.step)
      }
    }
  }

  /// Removes rows, all given as they are before the call (method `remove`).
  public func remove(_ feed: ListFeed, at rows: [Int]) throws(FeedError) {
    try operate(on: feed) { () throws(FeedError) in
      let descending = rows.sorted(by: >)
      for (place, row) in descending.enumerated() {
        if place > 0 && descending[place - 1] == row {
          throw .invalidParams(member: "at", reason: "names row \(row) twice; a row can be removed once")
        }
        try check(row, in: feed, upTo: feed.state.rows.count - 1, of: feed.state.rows.count + place)
        feed.state.remove(at: row, &log)
        addStep(&feed.state.step)
      }
    }
  }

  /// Puts elements in rows, pairing them in the order given (method `replace`).
  public func replace(_ feed: ListFeed, elements: [JSONView], at rows: [Int]) throws(FeedError) {
    try operate(on: feed) { () throws(FeedError) in
      for (place, element) in elements.enumerated() {
        try check(rows[place], in: feed, upTo: feed.state.rows.count - 1)
        try feed.state.replace(element, at: rows[place], index: place, now: tick(), &log)
        addStep(&feed.state.step)
      }
    }
  }

  /// Moves a row; `target` is where it stands afterwards (method `move`).
  public func move(_ feed: ListFeed, from row: Int, to target: Int) throws(FeedError) {
    try operate(on: feed) { () throws(FeedError) in
      try check(row, in: feed, upTo: feed.state.rows.count - 1)
      try check(target, in: feed, upTo: feed.state.rows.count - 1)
      feed.state.move(from: row, to: target, &log)
      addStep(&feed.state.step)
    }
  }

  /// Makes an array hold exactly these elements (method `set`); see `ListState.plan` for what is left alone.
  public func set(_ feed: ListFeed, elements: JSONView) throws(FeedError) {
    let buffer = ElementBuffer(compacting: elements, maxDepth: limits.maxDepth)
    let plan = feed.state.plan(buffer.views)
    try operate(on: feed) { () throws(FeedError) in
      for (old, new) in plan.replaced {
        try feed.state.replace(buffer.views[new], at: old, index: new, now: tick(), &log)
        addStep(&feed.state.step)
      }
      for row in plan.removed.reversed() {
        feed.state.remove(at: row, &log)
        addStep(&feed.state.step)
      }
      for row in plan.added {
        try feed.state.insert(buffer.views[row], at: row, index: row, now: tick(), &log)
        addStep(&feed.state.step)
      }
    }
  }

  /// Fills a single, or empties it with nil (method `put`): none to some is added, some to none deleted, some to other
  /// updated (seed 002).
  public func put(_ feed: ListFeed, element: JSONView?) throws(FeedError) {
    try operate(on: feed) { () throws(FeedError) in
      let isFull = feed.state.rows.count > 0
      switch (element, isFull) {
      case (let element?, true): try feed.state.replace(element, at: 0, index: 0, now: tick(), &log)
      case (let element?, false): try feed.state.insert(element, at: 0, index: 0, now: tick(), &log)
      case (nil, true): feed.state.remove(at: 0, &log)
      case (nil, false): return
      }
      addStep(&feed.state.step)
    }
  }

  private func operate(on feed: ListFeed, _ steps: () throws(FeedError) -> Void) throws(FeedError) {
    startOperation()
    let mark = log.mark
    do throws(FeedError) {
      try steps()
    } catch {
      throw abandon(error, to: mark)
    }
    finishSteps(on: feed, feed.state, since: mark)
  }

  private func check(_ row: Int, in feed: ListFeed, upTo last: Int, of count: Int? = nil) throws(FeedError) {
    if row < 0 || row > last {
      throw .indexOutOfRange(feed: feed.name, index: row, count: count ?? feed.state.rows.count, what: "row")
    }
  }
}
