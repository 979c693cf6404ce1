/// One row of a section: an element and the type it is shown as. Valid until the next mutation.
@frozen public struct Row {
  /// The element.
  public let element: ElementText
  /// The JSON string (quotes included) that names the row's type; empty when it has none.
  public let type: UnsafeRawBufferPointer

  @inlinable public init(element: ElementText, type: UnsafeRawBufferPointer) {
    self.element = element
    self.type = type
  }

  /// The element as compact JSON.
  @inlinable public var text: UnsafeRawBufferPointer { element.text }
}
