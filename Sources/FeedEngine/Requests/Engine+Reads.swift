import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// Methods that read feeds.
extension Engine {
  func get(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    if let id = parameters.member("id") { return try get(request, id, in: feed, of: session) }
    guard parameters.member("at") != nil else {
      throw Parameters.refuse("at", "is missing: give \"at\" as [section, row], or \"id\"")
    }
    let (section, row) = try parameters.path("at")
    let isThere = section < feed.sectionCount && row < feed.section(at: section).count
    let found = isThere ? feed.section(at: section).row(at: row) : nil
    try reply(request, of: session) { out in
      out.appendFound(found)
      out.append(",\"at\":[")
      out.append(integer: section)
      out.append(UInt8(ascii: ","))
      out.append(integer: row)
      out.append(UInt8(ascii: "]"))
    }
  }

  private func get(_ request: Request, _ id: JSONView, in feed: Feed, of session: Session) throws(FeedError) {
    let found = try catalog.find(id, in: feed)
    try reply(request, of: session) { out in
      out.appendFound(found?.row)
      out.append(",\"at\":")
      out.append(found?.places ?? [])
    }
  }

  func range(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let index = try parameters.count("section", default: 0)
    guard index < feed.sectionCount else {
      throw .indexOutOfRange(feed: feed.name, index: index, count: feed.sectionCount, what: "section")
    }
    let section = feed.section(at: index)
    let from = min(try parameters.count("from", default: 0), section.count)
    let count = min(try parameters.count("count", default: section.count - from), section.count - from)
    try reply(request, of: session) { out in
      out.append("\"revision\":")
      out.append(integer: feed.revision)
      append(section, rows: from..<(from + count), withTypes: true, to: &out)
    }
  }

  func snapshot(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    try reply(request, of: session) { out in
      out.append("\"revision\":")
      out.append(integer: feed.revision)
      out.append(",\"sections\":[")
      for index in 0..<feed.sectionCount {
        let section = feed.section(at: index)
        out.append(index > 0 ? ",{\"name\":" : "{\"name\":")
        out.appendJSONString(section.name)
        out.append(",\"count\":")
        out.append(integer: section.count)
        append(section, rows: 0..<section.count, withTypes: feed.hasTypes, to: &out)
        out.append(UInt8(ascii: "}"))
      }
      out.append(UInt8(ascii: "]"))
    }
  }

  func query(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let text = try parameters.string("path", "a JSONPath (RFC 9535)")
    let path: JSONPath
    do {
      path = try JSONPath(parsing: text)
    } catch {
      throw .badQuery(member: "path", text: text, offset: error.offset, reason: error.message)
    }
    let source = QuerySource(feed, limits: limits)
    let isSingle = (feed as? ListFeed)?.shape == .single
    if !isSingle, let elementwise = path.elementwise() {
      start(QueryJob(elementwise, over: source), for: request, of: session)
    } else {
      start(DocumentQueryJob(path, over: source, isSingle: isSingle), for: request, of: session)
    }
  }

  /// Appends `,"elements":[…]` and, if asked to, `,"types":[…]`. Stops early once no frame could hold it.
  private func append(_ section: Section, rows: Range<Int>, withTypes: Bool, to out: inout ByteBuffer) {
    let most = limits.maxFrame
    out.append(",\"elements\":[")
    var row = rows.lowerBound
    while row < rows.upperBound && out.count <= most * 2 {
      let end = min(row + 256, rows.upperBound)
      append(section, row..<end, isFirst: row == rows.lowerBound, to: &out) { $0.append($1.text) }
      row = end
    }
    out.append(UInt8(ascii: "]"))
    guard withTypes else { return }
    out.append(",\"types\":[")
    append(section, rows, isFirst: true, to: &out) { $0.append(typeOf: $1) }
    out.append(UInt8(ascii: "]"))
  }

  private func append(
    _ section: Section, _ rows: Range<Int>, isFirst: Bool, to out: inout ByteBuffer,
    _ write: (inout ByteBuffer, Row) -> Void
  ) {
    var isFirst = isFirst
    withUnsafeMutablePointer(to: &out) { out in
      section.forEach(in: rows) { row in
        if isFirst { isFirst = false } else { out.pointee.append(UInt8(ascii: ",")) }
        write(&out.pointee, row)
      }
    }
  }
}

extension ByteBuffer {
  /// Appends `"element":…,"type":…`, both null when there is none.
  fileprivate mutating func appendFound(_ row: Row?) {
    append("\"element\":")
    if let row { append(row.text) } else { append("null") }
    append(",\"type\":")
    if let row { append(typeOf: row) } else { append("null") }
  }
}
