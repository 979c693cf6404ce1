/** The names of the codes that a daemon answers with. See section 8 of the protocol. */
const names = new Map([
  [-32700, "ParseError"],
  [-32600, "InvalidRequest"],
  [-32601, "MethodNotFound"],
  [-32602, "InvalidParams"],
  [-32603, "InternalError"],
  [-32000, "UnknownFeed"],
  [-32001, "DefinitionConflict"],
  [-32002, "WrongKind"],
  [-32003, "NoIdentity"],
  [-32004, "BadQuery"],
  [-32005, "IndexOutOfRange"],
  [-32006, "PermissionDenied"],
  [-32007, "LimitExceeded"],
  [-32008, "StorageFailed"],
  [-32009, "ConditionFailed"],
  [-32010, "UnknownIdentity"],
  ["UNREACHABLE", "NoDaemon"],
  ["CLOSED", "ConnectionClosed"],
  ["TIMEOUT", "TimedOut"],
  ["PROTOCOL", "ProtocolError"],
  ["VERSION", "UnsupportedVersion"],
  ["GAP", "Gap"],
]);

/**
 * Why a request or a watch failed.
 *
 * `code` is a number if the daemon refused a request, which then changed nothing; otherwise it is one of the words in the table
 * above. `name` says the same in words. `data` has the facts: those of the daemon, or `reason` of its `bye`.
 */
export class FeedError extends Error {
  constructor(code, message, data = {}, options) {
    super(message, options);
    this.name = names.get(code) ?? "Refused";
    this.code = code;
    this.data = data;
  }
}

/** The error of a daemon that violates the protocol. The connection is closed. */
export const violation = (what, options) => new FeedError("PROTOCOL", `the daemon violates the protocol: ${what}`, {}, options);
