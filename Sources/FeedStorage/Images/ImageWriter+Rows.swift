import FeedJSON
import FeedModel
import FeedSQLite

extension ImageWriter {
  /// Rows that one part reads.
  private static let rowsPerPart = 128
  /// Rows whose numbers make one row of `section_rows`.
  private static let rowsPerChunk = 1024

  /// Writes further rows of a section, and the elements that were not written yet. Returns false at its end.
  func writeRows(of section: SectionSnapshot, _ index: Int) throws(SQLiteError) -> Bool {
    var failure: SQLiteError?
    let count = section.next(max: Self.rowsPerPart) { row in
      if failure != nil { return }
      do throws(SQLiteError) {
        note(try number(of: row.element))
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    if count == 0 || chunkCount >= Self.rowsPerChunk { try flushChunk(section: index) }
    if count == 0 { chunkStart = 0 }
    return count > 0
  }

  /// The number of an element, which is written if this is the first of its rows.
  private func number(of element: ElementText) throws(SQLiteError) -> UInt32 {
    let owner = Int(element.owner)
    if owner < numbers.count {
      if numbers[owner] != Self.none { return numbers[owner] }
    } else {
      numbers += repeatElement(Self.none, count: max(owner + 1 - numbers.count, numbers.count, 64))
    }
    let number = elements
    try insertElement.bind(Schema.base(of: feed) + Int64(number), at: 1)
    try insertElement.bind(element.arrival, at: 2)
    try insertElement.bind(element.changedAt.nanoseconds, at: 3)
    try insertElement.bind(lentText: element.text, at: 4)
    try insertElement.run()
    bytes += element.text.count + 32
    elements += 1
    numbers[owner] = number
    return number
  }

  private func note(_ number: UInt32) {
    chunk.append(chunkCount == 0 ? "[" : ",")
    chunk.append(integer: Int(number))
    chunkCount += 1
  }

  private func flushChunk(section: Int) throws(SQLiteError) {
    guard chunkCount > 0 else { return }
    chunk.append(UInt8(ascii: "]"))
    try insertRows.bind(Schema.base(of: feed) + chunks, at: 1)
    try insertRows.bind(section, at: 2)
    try insertRows.bind(chunkStart, at: 3)
    try insertRows.bind(lentText: chunk.bytes, at: 4)
    try insertRows.run()
    bytes += chunk.count
    chunks += 1
    chunkStart += chunkCount
    chunkCount = 0
    chunk.removeAll(keepingCapacity: true)
  }
}
