import FeedJSON
import FeedModel
import FeedSQLite

extension ImageWriter {
  /// Writes the row of a feed.
  func beginFeed(_ current: FeedImage) throws(SQLiteError) {
    feed += 1
    numbers.removeAll(keepingCapacity: true)
    elements = 0
    chunks = 0
    historyChunks = 0
    try insertFeed.bind(feed, at: 1)
    try insertFeed.bind(id, at: 2)
    try insertFeed.bind(current.name, at: 3)
    try insertFeed.bind(current.definition, at: 4)
    try insertFeed.bind(current.given.isEmpty ? current.definition : current.given, at: 5)
    try insertFeed.bind(current.revision, at: 6)
    try insertFeed.bind(Self.json(current.binRevisions.map { "\($0)" }), at: 7)
    try insertFeed.bind(Self.json(current.selection.map { "[\($0.section),\($0.row)]" }), at: 8)
    try insertFeed.run()
    bytes += 256 + current.definition.utf8.count + current.given.utf8.count
  }

  /// Notes from where the written changes lead on.
  func endFeed(_ current: FeedImage) throws(SQLiteError) {
    let remembering = current.remembering
    guard !remembering.isEmpty else { return }
    let bases = remembering.map { bin in "[\(bin ?? -1),\(current.historyBase(of: bin) ?? image.revision)]" }
    try updateFeed.bind(Self.json(bases), at: 1)
    try updateFeed.bind(feed, at: 2)
    try updateFeed.run()
  }

  private static func json(_ values: [String]) -> String { "[" + values.joined(separator: ",") + "]" }
}
