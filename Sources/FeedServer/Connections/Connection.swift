import FeedEngine
import FeedSystem

/// What the loop keeps of one connection; it lies in memory of its own, and the event queue holds its address.
///
/// Guarded by the loop's thread. A slot is reused only after the turn in which it was closed, so an event of the same
/// batch that is still to come finds `descriptor` -1 and is ignored.
struct Connection {
  /// -1 in a slot that is closed.
  var descriptor: Int32
  var id: ConnectionID
  /// What the event queue was last told.
  var interest: EventInterest = .readable
  /// Bytes that came and make no whole frame yet, or that the engine does not want yet.
  var input = InputBuffer()
  var flags: Flags = []

  struct Flags: OptionSet {
    let rawValue: UInt8
    /// The engine wants no input now: nothing is read until it does.
    static let isParked = Flags(rawValue: 1)
    /// The last write did not take everything: the event queue says when to go on.
    static let isBlocked = Flags(rawValue: 2)
    /// The peer sends no more.
    static let inputEnded = Flags(rawValue: 4)
    /// The peer reads no more: what is for it is dropped, what it sent is still taken.
    static let isDeaf = Flags(rawValue: 8)
    /// Taken out of the event queue, which would report a hang-up again and again.
    static let isDetached = Flags(rawValue: 16)
    /// On the list of connections to look at when the writes of the turn are done.
    static let isNoted = Flags(rawValue: 32)
    /// On the list of what the turn executes.
    static let isTaken = Flags(rawValue: 64)
    /// Both directions are over: what is left to read ends.
    static let isHungUp = Flags(rawValue: 128)
  }
}

/// The address of a connection's slot.
typealias ConnectionSlot = UnsafeMutablePointer<Connection>

extension UnsafeMutablePointer<Connection> {
  /// What the event queue hands back with an event.
  var token: UInt64 { UInt64(UInt(bitPattern: self)) }

  var isOpen: Bool { pointee.descriptor >= 0 }
}
