import FeedChange
import FeedJSON

/// Reads members of a message from the daemon. A missing member or one of the wrong kind throws ``MalformedMessage``.
package struct MemberReader {
  package let object: JSONView
  /// The message's name, for errors.
  let place: StaticString

  package init(object: JSONView, place: StaticString) { (self.object, self.place) = (object, place) }

  private func malformed(_ name: StaticString, _ expected: StaticString) -> MalformedMessage {
    MalformedMessage("\(place): \"\(name)\" is not \(expected)")
  }

  package func revision(_ name: StaticString) throws(MalformedMessage) -> UInt64 {
    guard let value = object.member(name)?.int.flatMap({ UInt64(exactly: $0) }) else {
      throw malformed(name, "a revision")
    }
    return value
  }

  package func string(_ name: StaticString) throws(MalformedMessage) -> String {
    guard let value = object.member(name)?.string else { throw malformed(name, "a string") }
    return value
  }

  /// A boolean member, false if it is absent.
  package func flag(_ name: StaticString) -> Bool { object.member(name)?.bool ?? false }

  package func array(_ name: StaticString) throws(MalformedMessage) -> JSONView.Elements {
    guard let value = object.member(name), value.kind == .array else { throw malformed(name, "an array") }
    return value.elements
  }

  package func path(_ name: StaticString) throws(MalformedMessage) -> IndexPath {
    guard let path = object.member(name).flatMap(IndexPath.init) else { throw malformed(name, "[section, row]") }
    return path
  }

  package func paths(_ name: StaticString) throws(MalformedMessage) -> [IndexPath] {
    var paths: [IndexPath] = []
    for element in try array(name) {
      guard let path = IndexPath(element) else { throw malformed(name, "a list of [section, row]") }
      paths.append(path)
    }
    return paths
  }

  /// A number of rows of each section. Rows have numbers of 32 bits, so that sums of counts do not overflow.
  package func counts(_ name: StaticString) throws(MalformedMessage) -> [Int] {
    var counts: [Int] = []
    for element in try array(name) {
      guard let count = element.rowCount else { throw malformed(name, "a list of numbers of rows") }
      counts.append(count)
    }
    return counts
  }

  /// The sections of a watch's result or of a reset.
  package func sections(_ name: StaticString) throws(MalformedMessage) -> [SectionSummary] {
    var sections: [SectionSummary] = []
    for element in try array(name) {
      guard let name = element.member("name")?.string, let count = element.member("count")?.rowCount else {
        throw malformed("sections", "a list of names and counts")
      }
      sections.append(SectionSummary(name: name, key: element.member("key")?.compactText, count: count))
    }
    return sections
  }

  /// Copies of the compact texts of an array's elements.
  package func texts(_ name: StaticString) throws(MalformedMessage) -> [[UInt8]] {
    var texts: [[UInt8]] = []
    for element in try array(name) { texts.append(element.compactText) }
    return texts
  }

  /// The types of `count` elements; nil if the message has none.
  package func types(count: Int) throws(MalformedMessage) -> [String?]? {
    guard object.member("types") != nil else { return nil }
    var types: [String?] = []
    types.reserveCapacity(count)
    for element in try array("types") { types.append(element.string) }
    guard types.count == count else { throw malformed("types", "as long as \"elements\"") }
    return types
  }
}

extension IndexPath {
  /// Parses an array of two row numbers; nil for anything else.
  package init?(_ view: JSONView) {
    guard view.kind == .array, view.count == 2 else { return nil }
    var elements = view.elements
    guard let section = elements.next()?.int.flatMap({ UInt32(exactly: $0) }),
      let row = elements.next()?.int.flatMap({ UInt32(exactly: $0) })
    else { return nil }
    self.init(section: section, row: row)
  }
}

extension JSONView {
  /// The value as the number of rows of a section; nil for anything else.
  fileprivate var rowCount: Int? { int.flatMap { UInt32(exactly: $0) }.map(Int.init) }

  /// A copy of the value's text without white space outside strings.
  package var compactText: [UInt8] {
    if isCompact { return Array(text) }
    var buffer = ByteBuffer(capacity: text.count)
    buffer.append(compact: self)
    return Array(buffer.bytes)
  }
}

/// A message that violates the protocol: the peer is not feedd, or one side has a bug.
public struct MalformedMessage: Error, Equatable, Sendable {
  /// The expectation and the place, for example "delta: `from` is not a revision".
  public var description: String

  public init(_ description: String) { self.description = description }
}

extension MalformedMessage: CustomStringConvertible {}
