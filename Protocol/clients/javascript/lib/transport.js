/**
 * A transport over a pair of web streams of bytes, as of `WebSocketStream`, `WebTransport`, or two `TransformStream`s.
 * Reading is pulled, so back-pressure goes through.
 */
export function streamTransport({ readable, writable }) {
  const reader = readable.getReader();
  const writer = writable.getWriter();
  return {
    async read() {
      const { done, value } = await reader.read();
      return done ? null : value;
    },
    write: (bytes) => writer.write(bytes),
    close() {
      reader.cancel().catch(() => {});
      writer.abort().catch(() => {});
    },
  };
}
