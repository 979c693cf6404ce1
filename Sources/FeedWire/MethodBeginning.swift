import Glibc

extension Method {
  /// The method of a request that begins as clients write it, with `{"jsonrpc":"2.0",` and perhaps its id before the method.
  ///
  /// nil when that cannot be told without reading more. Whether the rest of `payload` is a sound request, and names its method
  /// only once, is left open. O(bytes before the parameters).
  public init?(atBeginningOf payload: UnsafeRawBufferPointer) {
    guard var place = payload.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
    let end = place + payload.count
    guard Self.take("{\"jsonrpc\":\"2.0\",", &place, end) else { return nil }
    if Self.take("\"id\":", &place, end) {
      guard Self.skipPlainValue(&place, end), Self.take(",", &place, end) else { return nil }
    }
    guard Self.take("\"method\":", &place, end), let name = Self.string(&place, end) else { return nil }
    self.init(utf8: UnsafeRawBufferPointer(name))
  }

  private typealias Place = UnsafePointer<UInt8>

  private static func take(_ text: StaticString, _ place: inout Place, _ end: Place) -> Bool {
    let count = text.utf8CodeUnitCount
    guard end - place >= count, memcmp(place, text.utf8Start, count) == 0 else { return false }
    place += count
    return true
  }

  /// The inside of a string without escapes.
  private static func string(_ place: inout Place, _ end: Place) -> UnsafeBufferPointer<UInt8>? {
    guard take("\"", &place, end) else { return nil }
    let start = place
    while place < end, place.pointee != UInt8(ascii: "\\") {
      place += 1
      if place[-1] == UInt8(ascii: "\"") { return UnsafeBufferPointer(start: start, count: place - start - 1) }
    }
    return nil
  }

  /// Goes past a string without escapes or a number.
  private static func skipPlainValue(_ place: inout Place, _ end: Place) -> Bool {
    if string(&place, end) != nil { return true }
    let start = place
    while place < end {
      switch place.pointee {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
        UInt8(ascii: "E"), UInt8(ascii: "e"):
        place += 1
      default: return place > start
      }
    }
    return false
  }
}
