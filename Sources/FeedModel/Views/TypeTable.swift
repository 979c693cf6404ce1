/// Types of rows that are not part of their elements, such as those of slots feeds.
final class TypeTable {
  /// The number of a type; `own` means the type of the element itself.
  typealias Code = Int32
  static let own: Code = -1

  private var names: [[UInt8]] = []
  private var numbers: [[UInt8]: Code] = [:]
  private var memory: [UnsafeMutableRawBufferPointer] = []

  deinit {
    for bytes in memory { bytes.deallocate() }
  }

  var isEmpty: Bool { memory.isEmpty }

  func code(of type: UnsafeRawBufferPointer, in element: ElementText) -> Code {
    let own = element.type
    if type.baseAddress == own.baseAddress && type.count == own.count || type.isEmpty && own.isEmpty { return Self.own }
    let name = Array(type)
    if let known = numbers[name] { return known }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, name.count), alignment: 1)
    bytes.copyBytes(from: name)
    names.append(name)
    memory.append(bytes)
    numbers[name] = Code(memory.count - 1)
    return Code(memory.count - 1)
  }

  func type(_ code: Code, of element: ElementText) -> UnsafeRawBufferPointer {
    if code == Self.own { return element.type }
    return UnsafeRawBufferPointer(rebasing: memory[Int(code)][..<names[Int(code)].count])
  }
}
