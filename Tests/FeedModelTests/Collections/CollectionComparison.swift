import FeedJSON

@testable import FeedChange
@testable import FeedModel

/// Comparison of the collection with the reference.
extension CollectionPair {
  /// Compares the rows, elements and positions of the collection, and the order of eviction.
  func compare() throws {
    let feed = try feed
    guard feed.sectionCount == reference.bins.count else { throw Mismatch("\(feed.sectionCount) sections") }
    for (place, bin) in reference.bins.enumerated() {
      let rows = rows(of: feed.section(at: place))
      let wanted = bin.map { reference.element($0).text }
      guard rows == wanted else { throw Mismatch("bin \(place) holds \(rows), not \(wanted)") }
      guard feed.section(at: place).name == "c/\(reference.rules.bins[place].name)" else {
        throw Mismatch("the name of bin \(place)")
      }
    }
    try compareElements(collection)
    for element in reference.elements { try comparePlaces(element) }
  }

  private func rows(of section: any FeedSection) -> [String] {
    var rows: [String] = []
    section.forEach(in: 0..<section.count) { rows.append(String(decoding: $0.text, as: UTF8.self)) }
    return rows
  }

  private func compareElements(_ collection: CollectionKind) throws {
    let table = collection.state.elements
    guard table.count == reference.elements.count, collection.state.index.count == table.count else {
      throw Mismatch("\(table.count) elements, \(collection.state.index.count) identities")
    }
    func texts(_ handles: [UInt32]) -> [String] {
      handles.map { String(decoding: table.text(of: $0).text, as: UTF8.self) }
    }
    var bytes = 0
    table.forEach { bytes += table.text(of: $0).footprint }
    guard bytes == table.bytes else { throw Mismatch("\(table.bytes) bytes are counted of \(bytes)") }
    guard texts(table.inOrderOfArrival()) == reference.elements.map(\.text) else {
      throw Mismatch("the order of arrival")
    }
    if reference.rules.retainCount == nil && reference.rules.retainSeconds == nil { return }
    var handles: [UInt32] = []
    table.forEach { handles.append($0) }
    guard texts(handles) == reference.byChange.map(\.text) else {
      throw Mismatch("\(texts(handles)) is the order of eviction, not \(reference.byChange.map(\.text))")
    }
    let times = handles.map { table.text(of: $0).changedAt.nanoseconds }
    // The model distinguishes changes of the same moment by nanoseconds.
    guard zip(times, reference.byChange).allSatisfy({ $0 >= $1.at && $0 < $1.at + 1_000_000 }) else {
      throw Mismatch("\(times) are the times of change, not \(reference.byChange.map(\.at))")
    }
  }

  private func comparePlaces(_ element: CollectionReference.Element) throws {
    let id = element.identity.hasPrefix("s") ? "\"\(element.identity.dropFirst())\"" : "\(element.identity.dropFirst())"
    let wanted = reference.bins.indices.compactMap { bin in
      reference.bins[bin].firstIndex(of: element.birth)
        .map { IndexPath(section: UInt32(bin), row: UInt32($0)) }
    }
    let found = try withView(id) { try catalog.find($0, in: feed)?.places }
    guard found == wanted else { throw Mismatch("\(id) is found at \(found as Any), not \(wanted)") }
    for (place, bin) in reference.rules.bins.enumerated() {
      let found = try withView(id) { try catalog.find($0, in: catalog.feed(named: "c/\(bin.name)"))?.places }
      let row = wanted.first { Int($0.section) == place }.map { [IndexPath(section: 0, row: $0.row)] }
      guard found == row else { throw Mismatch("\(id) is found in \(bin.name) at \(found as Any)") }
    }
  }
}
