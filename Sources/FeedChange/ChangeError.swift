/// Why a change does not fit the sections it is applied to: the reader of a feed has missed something, or the writer of the
/// change has a fault.
public enum ChangeError: Error, Equatable, Sendable {
  /// One of the lists of a change.
  public enum List: String, Sendable {
    case deleted
    case added
    case updated
    case sectionsDeleted = "sections.deleted"
    case sectionsAdded = "sections.added"
  }

  /// The entry at that place of the list is not greater than the one before it.
  case notAscending(List, place: Int)
  /// The row, at that place of the list, is not there, or would be added past the end.
  case rowOutOfRange(List, place: Int, IndexPath)
  /// The section, at that place of the list, is not there, or would be added past the end.
  case sectionOutOfRange(List, place: Int, section: UInt32)
  /// The row at that place of `deleted` is listed although its whole section is deleted.
  case rowOfDeletedSection(place: Int, IndexPath)
  /// The row at that place of `updated` is also in `added`.
  case addedAndUpdated(place: Int, IndexPath)
  /// The move at that place names an entry that is not there, or that an earlier move names, or is out of order.
  case badMove(place: Int)
  /// There must be one element for each of `added` and then of `updated`.
  case elementCount(expected: Int, found: Int)
}

extension ChangeError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notAscending(let list, let place):
      "\(list.rawValue)[\(place)] is not greater than the entry before it"
    case .rowOutOfRange(let list, let place, let path):
      "\(list.rawValue)[\(place)] is \(path), which is out of range"
    case .sectionOutOfRange(let list, let place, let section):
      "\(list.rawValue)[\(place)] names section \(section), which is out of range"
    case .rowOfDeletedSection(let place, let path):
      "deleted[\(place)] is \(path), a row of a section that is deleted as a whole"
    case .addedAndUpdated(let place, let path):
      "updated[\(place)] is \(path), which is also added"
    case .badMove(let place):
      "moves[\(place)] does not pair an entry of deleted with an entry of added"
    case .elementCount(let expected, let found):
      "the change needs \(expected) elements and has \(found)"
    }
  }
}
