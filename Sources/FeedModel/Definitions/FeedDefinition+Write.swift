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
    }
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
  /// Appends a finite number; a whole one without a fraction.
  fileprivate mutating func append(number: Double) {
    if let whole = Int(exactly: number) {
      append(integer: whole)
    } else {
      append(string: "\(number)")
    }
  }
}
