import FeedJSON

extension FeedDefinition {
  /// Appends the definition's members without the braces, defaults included, so that reading it gives an equal one.
  public func appendMembers(to out: inout ByteBuffer) {
    out.append("\"feed\":")
    out.appendJSONString(name)
    out.append(",\"kind\":")
    out.appendJSONString(kind)
    switch content {
    case .collection(let collection): collection.appendMembers(to: &out)
    case .list(let list):
      if let type = list.type { out.append(member: "type", type.text) }
    case .composed(let children): out.append(member: "children", children)
    case .segmented(let children, let current):
      out.append(member: "children", children)
      out.append(",\"current\":")
      out.append(integer: current)
    case .slots(let slots): slots.appendMembers(to: &out)
    case .managed(let managed): managed.appendMembers(to: &out)
    }
    behaviours.appendMembers(to: &out)
  }
}

extension Behaviours {
  /// Only what differs from the defaults.
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    let defaults = Behaviours()
    if selectable != defaults.selectable { out.append(selectable ? ",\"selectable\":true" : ",\"selectable\":false") }
    if multiple != defaults.multiple { out.append(multiple ? ",\"multiple\":true" : ",\"multiple\":false") }
    if editable != defaults.editable { out.append(editable ? ",\"editable\":true" : ",\"editable\":false") }
    if movable != defaults.movable { out.append(movable ? ",\"movable\":true" : ",\"movable\":false") }
  }
}

extension ManagedDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(member: "database", database)
    out.append(member: "query", query)
    out.append(member: "id", id)
    if let section { out.append(member: "section", section) }
    if let type { out.append(member: "type", type.text) }
  }
}

extension SlotsDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"contents\":{")
    for (place, content) in contents.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(content.type)
      out.append(UInt8(ascii: ":"))
      out.appendJSONString(content.feed)
    }
    out.append(UInt8(ascii: "}"))
    out.append(member: "pattern", pattern)
    if !repeatables.isEmpty { out.append(member: "repeatables", repeatables) }
    if !header.isEmpty { out.append(member: "header", header) }
    if let defaultType { out.append(member: "default", defaultType) }
    if fixed.isEmpty { return }
    out.append(",\"fixed\":{")
    for (place, entry) in fixed.enumerated() {
      out.append(place > 0 ? ",\"" : "\"")
      out.append(integer: entry.position)
      out.append("\":")
      out.appendJSONString(entry.type)
    }
    out.append(UInt8(ascii: "}"))
  }
}

extension CollectionDefinition {
  fileprivate func appendMembers(to out: inout ByteBuffer) {
    out.append(",\"id\":")
    out.appendJSONString(id.text)
    if let type {
      out.append(",\"type\":")
      out.appendJSONString(type.text)
    }
    out.append(exclusive ? ",\"exclusive\":true" : ",\"exclusive\":false")
    out.append(",\"bins\":[")
    for (index, bin) in bins.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      bin.append(to: &out)
    }
    out.append(UInt8(ascii: "]"))
    retain?.append(to: &out)
  }
}

extension CollectionDefinition.Bin {
  fileprivate func append(to out: inout ByteBuffer) {
    out.append("{\"name\":")
    out.appendJSONString(name)
    if let filter {
      out.append(",\"filter\":")
      out.appendJSONString(filter.text)
    }
    if !sort.isEmpty {
      out.append(",\"sort\":[")
      for (index, term) in sort.enumerated() {
        out.append(index > 0 ? ",{\"by\":" : "{\"by\":")
        out.appendJSONString(term.by.text)
        out.append(term.descending ? ",\"order\":\"descending\"}" : ",\"order\":\"ascending\"}")
      }
      out.append(UInt8(ascii: "]"))
    }
    out.append(UInt8(ascii: "}"))
  }
}

extension CollectionDefinition.Retention {
  fileprivate func append(to out: inout ByteBuffer) {
    out.append(",\"retain\":{")
    if let count {
      out.append("\"count\":")
      out.append(integer: count)
    }
    if let seconds {
      out.append(count == nil ? "\"seconds\":" : ",\"seconds\":")
      out.append(number: seconds)
    }
    out.append(UInt8(ascii: "}"))
  }
}

extension ByteBuffer {
  fileprivate mutating func append(member name: StaticString, _ value: String) {
    append(",\"")
    append(name)
    append("\":")
    appendJSONString(value)
  }

  fileprivate mutating func append(member name: StaticString, _ values: [String]) {
    append(",\"")
    append(name)
    append("\":[")
    for (place, value) in values.enumerated() {
      if place > 0 { append(UInt8(ascii: ",")) }
      appendJSONString(value)
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends a finite number; a whole one without a fraction.
  fileprivate mutating func append(number: Double) {
    if let whole = Int(exactly: number) {
      append(integer: whole)
    } else {
      append(string: "\(number)")
    }
  }
}
