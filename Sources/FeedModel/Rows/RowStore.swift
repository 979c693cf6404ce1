/// Elements and the stored rows they stand in: what collections, arrays and singles are made of.
///
/// Guarded by the engine's thread. Everything that changes it is one of the logged primitives, each of which notes how to
/// undo itself, so that a commit can be taken back step by step.
class RowStore {
  let elements: ElementTable
  let sections: [RowSection]

  init(elements: ElementTable, sections: [RowSection]) {
    self.elements = elements
    self.sections = sections
  }

  /// An element came to life, or came back to it.
  func didAdd(_ handle: UInt32) {}
  /// An element is about to leave.
  func willRemove(_ handle: UInt32) {}

  /// An element as a row.
  func row(of handle: UInt32) -> Row {
    let element = elements.text(of: handle)
    return Row(element: element, type: element.type)
  }
}
