/// What a JSON value is (RFC 8259, section 3). The raw values ascend in the order in which feeds sort values of
/// different kinds: null < false < true < numbers < strings < arrays and objects.
@frozen public enum JSONKind: UInt8, Sendable {
  case null
  case `false`
  case `true`
  case number
  case string
  case array
  case object
}
