extension CodePointClasses {
  /// The tables as raw memory, for the inner loop.
  struct Tables {
    let ascii: UnsafePointer<UInt16>
    let starts: UnsafeBufferPointer<UInt32>
    let intervalClasses: UnsafePointer<UInt16>

    /// The class of the code point at `position`, which moves behind it; never beyond `end`.
    ///
    /// Three bytes of a surrogate are a code point like any other. A sequence that is cut short gives some class.
    @inline(__always)
    func next(_ position: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
      let lead = position.pointee
      position += 1
      if lead < 0x80 { return Int(ascii[Int(lead)]) }
      return nextBeyondASCII(lead, &position, end)
    }

    private func nextBeyondASCII(
      _ lead: UInt8, _ position: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>
    ) -> Int {
      let following = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3
      var codePoint = UInt32(lead) & (0x3F &>> UInt32(following))
      for _ in 0..<following where position < end {
        codePoint = codePoint &<< 6 | UInt32(position.pointee & 0x3F)
        position += 1
      }
      var (low, high) = (0, starts.count)
      while high &- low > 1 {
        let middle = (low &+ high) / 2
        if starts[middle] <= codePoint { low = middle } else { high = middle }
      }
      return Int(intervalClasses[low])
    }
  }

  func withTables<Result>(_ body: (Tables) -> Result) -> Result {
    ascii.withUnsafeBufferPointer { ascii in
      starts.withUnsafeBufferPointer { starts in
        intervalClasses.withUnsafeBufferPointer { classes in
          // None of the three is ever empty.
          body(
            Tables(
              ascii: ascii.baseAddress.unsafelyUnwrapped, starts: starts,
              intervalClasses: classes.baseAddress.unsafelyUnwrapped))
        }
      }
    }
  }
}
