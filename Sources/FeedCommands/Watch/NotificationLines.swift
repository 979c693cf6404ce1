import FeedChange
import FeedClient
import FeedJSON

/// `watch` for programs: prints the daemon's notifications, one on each line.
///
/// With a filter, a notification lists only the rows that pass it, at their true places; a part of a snapshot becomes a part
/// for each run of rows that pass. The snapshot of a reset says in its first part that it is one, and in each part which of its
/// rows were added, updated or moved since the rows shown before, if they are known.
///
/// With a filter and with `--ids`, deltas list the identities of deleted rows. The rows known before tell those that the daemon
/// does not know.
final class NotificationLines: LineDisplay {
  private let filter: ChangeFilter
  private let needs: RowNeeds
  private let listsIDs: Bool
  /// Whether the rows of the first snapshot are shown.
  private let isInitial: Bool
  /// The rows that the earlier parts of a reset's snapshot have in another section than before, by the index of the feed.
  private var left: [Int: [RowChange]] = [:]

  init(_ console: Console, _ settings: WatchSettings) {
    filter = settings.filter
    isInitial = settings.initial
    listsIDs = settings.ids || !filter.isOpen
    needs = listsIDs || settings.sinceFile != nil ? .all : .resets
    super.init(console)
  }

  override var countsStates: Bool { false }
  override var rowNeeds: RowNeeds { needs }
  override var needsIDs: Bool { listsIDs }

  override func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool {
    guard let news, !filter.isOpen || news.isOfReset || lacksIDs(notification, news) else {
      let isShown = filter.isOpen || notification.kind == .bye
      if isShown { console.print(notification.whole) }
      return isShown
    }
    return notification.kind == .snapshot
      ? show(snapshot: notification.params, news, feed) : show(delta: notification.params, news)
  }

  /// Whether the daemon does not know the identities of the rows that a delta deletes.
  private func lacksIDs(_ notification: Notification, _ news: RowNews) -> Bool {
    listsIDs && notification.kind == .delta && news.delta?.deletedIDs == nil
  }

  private func print(_ method: String, _ params: consuming ParameterWriter) {
    console.print("{\"jsonrpc\":\"2.0\",\"method\":\"\(method)\",\"params\":\(params.finish())}")
  }
}

extension NotificationLines {
  private func show(snapshot params: JSONView, _ news: RowNews, _ feed: Int) -> Bool {
    // --only leaves out the rows of a snapshot, unless they are new since the rows before a reset.
    guard news.isOfReset || filter.words == nil && isInitial else { return false }
    let isLast = params.member("last")?.bool == true
    let rows = filter.seen(news.rows)
    let earlier = news.reset == nil ? left[feed] ?? [] : []
    let gone = earlier + rows.filter { $0.number == nil }
    left[feed] = isLast ? nil : gone
    var runs = Self.runs(rows.filter { $0.number != nil })
    // The first and the last part are there in any case, also without rows.
    if runs.isEmpty, isLast || news.reset != nil || filter.isOpen { runs = [[]] }
    for (place, run) in runs.enumerated() {
      let isEnd = isLast && place + 1 == runs.count
      show(run, of: params, isFirst: place == 0, news, gone: isEnd ? gone : nil)
    }
    return !runs.isEmpty
  }

  /// Divides rows into those with consecutive places.
  private static func runs(_ rows: [RowChange]) -> [[RowChange]] {
    var runs: [[RowChange]] = []
    for row in rows {
      if let last = runs.last?.last?.number, row.number == last + 1 {
        runs[runs.count - 1].append(row)
      } else {
        runs.append([row])
      }
    }
    return runs
  }

  /// Prints a part of a snapshot.
  /// - Parameters:
  ///   - isFirst: whether the rows are the first ones of the part. Only they begin a reset.
  ///   - gone: in the last part, the rows that the snapshot of a reset does not have any more, or not in the section.
  private func show(
    _ rows: [RowChange], of part: JSONView, isFirst: Bool, _ news: RowNews, gone: [RowChange]?
  ) {
    var params = ParameterWriter()
    for member in part.members {
      switch member.key.string {
      case "at":
        params.add("at", json: rows.first?.after.map { "\($0.path)" } ?? member.value.source)
      case "elements":
        params.add("elements", json: rows.compactMap { $0.element.map(Self.text) })
      case "types":
        params.add("types", json: rows.map { $0.type.map(\.quotedAsJSON) ?? "null" })
      case "last": params.add("last", gone != nil)
      case "reset" where !isFirst, "sections" where !isFirst: continue
      case let name?: params.add(name, json: Self.text(member.value))
      case nil: continue
      }
    }
    if isFirst, let sections = news.reset?.sections {
      params.add("reset", true)
      params.add("sections", sections)
    }
    if news.isOfReset { Self.compare(rows, gone, to: &params) }
    print("snapshot", params)
  }

  /// Adds the places of the rows that are new or other than before the reset; null if that is not known.
  private static func compare(_ rows: [RowChange], _ gone: [RowChange]?, to params: inout ParameterWriter) {
    let isKnown = !rows.contains { $0.kind == .unknown }
    func paths(_ kinds: [RowChange.Kind]) -> String {
      guard isKnown else { return "null" }
      let paths = rows.filter { kinds.contains($0.kind) }.compactMap { $0.after?.path.description }
      return "[\(paths.joined(separator: ","))]"
    }
    params.add("added", json: paths([.added]))
    params.add("updated", json: paths([.updated, .movedAndUpdated]))
    guard let gone, isKnown else { return }
    let deleted = gone.compactMap { row in row.before.map { (path: $0.path, row: row) } }.sorted { $0.path < $1.path }
    params.add("deleted", json: deleted.map(\.path.description))
    params.add("deletedIDs", json: deleted.map { Self.identity(of: $0.row) })
  }

  private static func text(_ view: JSONView) -> String { String(decoding: view.compactText, as: UTF8.self) }
}

extension NotificationLines {
  private func show(delta: JSONView, _ news: RowNews) -> Bool {
    let rows = filter.seen(news.rows)
    guard !rows.isEmpty || filter.isOpen || delta.member("ended")?.bool == true else { return false }
    let deleted = rows.compactMap { row in row.deletedNumber.map { (number: $0, row: row) } }
      .sorted { $0.number < $1.number }
    let listed = rows.filter { $0.number != nil }
    let added = listed.filter { $0.kind != .updated }
    // The places in the list by the numbers in the notification.
    let addedPlaces = Dictionary(
      uniqueKeysWithValues: added.enumerated().compactMap { place, row in row.number.map { ($0, place) } })
    var params = ParameterWriter()
    for member in delta.members {
      switch member.key.string {
      case "deleted": params.add("deleted", json: deleted.compactMap { $0.row.before?.path.description })
      case "deletedIDs", "deletedSectionIDs": continue
      case "added": params.add("added", json: added.compactMap { $0.after?.path.description })
      case "updated":
        params.add(
          "updated", json: listed.filter { $0.kind == .updated }.compactMap { $0.after?.path.description })
      case "moves":
        let moves = deleted.enumerated().compactMap { place, entry in
          entry.row.number.flatMap { addedPlaces[$0] }.map { "[\(place),\($0)]" }
        }
        if !moves.isEmpty { params.add("moves", json: moves) }
      case "elements": params.add("elements", json: listed.compactMap { $0.element.map(Self.text) })
      case "types": params.add("types", json: listed.map { $0.type.map(\.quotedAsJSON) ?? "null" })
      case let name?: params.add(name, json: Self.text(member.value))
      case nil: continue
      }
    }
    addIDs(of: deleted.map(\.row), rows, news, to: &params)
    print("delta", params)
    return true
  }

  /// Adds the identities of the rows in `deleted`, and of the rows of each deleted section; null if none is known.
  private func addIDs(
    of deleted: [RowChange], _ rows: [RowChange], _ news: RowNews, to params: inout ParameterWriter
  ) {
    let sections = news.delta?.change.sectionsDeleted ?? []
    // A row that the sections had and that is elsewhere now did not leave the filter.
    let ofSections = rows.filter {
      $0.deletedNumber == nil && $0.before != nil && ($0.kind == .deleted || filter.isOpen)
    }
    let areNone = deleted.isEmpty && (sections.isEmpty || news.hasAllDeleted && ofSections.isEmpty)
    let isTold = news.delta?.deletedIDs != nil || areNone
    guard isTold || (deleted + ofSections).contains(where: { $0.id != nil }) else {
      return params.add("deletedIDs", json: "null")
    }
    params.add("deletedIDs", json: deleted.map(Self.identity))
    if sections.isEmpty { return }
    let lists = sections.map { section in
      ofSections.filter { $0.before?.path.section == section }.map(Self.identity).joined(separator: ",")
    }
    params.add("deletedSectionIDs", json: lists.map { "[\($0)]" })
  }

  private static func identity(of row: RowChange) -> String {
    row.id.map { String(decoding: RowPrint.canonical($0), as: UTF8.self) } ?? "null"
  }
}
