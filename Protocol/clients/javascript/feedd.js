/** The client without Node: for browsers and other runtimes, over a transport that is handed in. */
export { Client } from "./lib/client.js";
export { Connection } from "./lib/connection.js";
export { FeedError } from "./lib/errors.js";
export { Counts, Mirror, Row } from "./lib/mirror.js";
export { Rows } from "./lib/rows.js";
export { decode, encode, JSONText, NumberText } from "./lib/text.js";
export { streamTransport } from "./lib/transport.js";
