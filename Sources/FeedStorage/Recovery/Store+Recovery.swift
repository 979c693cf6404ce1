import FeedModel
import FeedSQLite

extension Store {
  /// Fills `target` with what is stored, and goes on from there.
  public func recover(into target: any RecoveryTarget) throws(StorageError) -> RecoveryProgress {
    var recovery = Recovery(database, path: path, into: target)
    try recovery.run()
    newestMoment = recovery.progress.newestMoment
    imageBytes = recovery.image.bytes
    let image = recovery.image
    try StorageError.naming(path) { () throws(SQLiteError) in
      journalBytes = try journalBytes(after: image.journal)
      waste = try images(before: image.id).map { .image($0) }
      if try database.integer("SELECT min(seq) FROM journal") ?? .max <= image.journal {
        waste.append(.journal(upTo: image.journal))
      }
    }
    return recovery.progress
  }
}
