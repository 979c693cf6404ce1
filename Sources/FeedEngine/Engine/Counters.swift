/// What the daemon has done since it started.
struct Counters {
  var connections: UInt64 = 0
  var refusedConnections: UInt64 = 0
  var requests: UInt64 = 0
  var errors: UInt64 = 0
  var commits: UInt64 = 0
  var deltas: UInt64 = 0
  var composedDeltas: UInt64 = 0
  var snapshots: UInt64 = 0
  var resets: UInt64 = 0
  var bytesIn: UInt64 = 0
  var bytesOut: UInt64 = 0
}

/// What one user's connections hold at the moment.
struct UserUsage {
  var connections = 0
  /// Bytes that wait for them, and that they have begun to send.
  var holding = 0
}
