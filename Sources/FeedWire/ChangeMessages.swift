import FeedChange
import FeedJSON

/// Writing changes ("The change" in `Protocol/README.md`).
extension ByteBuffer {
  /// Appends the members of a change: `deleted`, `added`, `updated`, and if they are not empty `sections` and `moves`. O(size).
  public mutating func append(_ change: borrowing Change) {
    append("\"deleted\":")
    append(change.deleted)
    append(",\"added\":")
    append(change.added)
    append(",\"updated\":")
    append(change.updated)
    append(sectionsOf: change)
    if !change.moves.isEmpty { append(change.moves) }
  }

  /// Appends `,"sections":…` if the change deletes or adds sections.
  public mutating func append(sectionsOf change: borrowing Change) {
    if !change.sectionsDeleted.isEmpty || !change.sectionsAdded.isEmpty {
      appendSections(change.sectionsDeleted, change.sectionsAdded)
    }
  }

  /// Appends index paths as an array of arrays `[section,row]`.
  public mutating func append(_ paths: [IndexPath]) {
    if paths.isEmpty { return append("[]") }
    append(UInt8(ascii: "["))
    var first = true
    for path in paths {
      if first { first = false } else { append(UInt8(ascii: ",")) }
      append(path)
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends an index path as `[section,row]`.
  public mutating func append(_ path: IndexPath) {
    append(UInt8(ascii: "["))
    append(integer: path.section)
    append(UInt8(ascii: ","))
    append(integer: path.row)
    append(UInt8(ascii: "]"))
  }

  private mutating func appendSections(_ deleted: [UInt32], _ added: [SectionAddition]) {
    append(",\"sections\":{\"deleted\":[")
    for (place, section) in deleted.enumerated() {
      if place > 0 { append(UInt8(ascii: ",")) }
      append(integer: section)
    }
    append("],\"added\":[")
    for (place, section) in added.enumerated() {
      append(place > 0 ? ",{\"at\":" : "{\"at\":")
      append(integer: section.at)
      append(",\"name\":")
      appendJSONString(section.name)
      append(UInt8(ascii: "}"))
    }
    append("]}")
  }

  private mutating func append(_ moves: [Move]) {
    append(",\"moves\":[")
    var first = true
    for move in moves {
      append(first ? "[" : ",[")
      first = false
      append(integer: move.deleted)
      append(UInt8(ascii: ","))
      append(integer: move.added)
      append(UInt8(ascii: "]"))
    }
    append(UInt8(ascii: "]"))
  }
}
