const table = new Uint32Array(256).map((_, byte) => {
  for (let bit = 0; bit < 8; bit += 1) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

const encoder = new TextEncoder();

/** Continues a CRC-32 with a text in UTF-8. */
function summed(crc, text) {
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character >= 128) {
      for (const byte of encoder.encode(text.slice(at))) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8);
      return crc;
    }
    crc = table[(crc ^ character) & 0xff] ^ (crc >>> 8);
  }
  return crc;
}

/** The digest that `verify` returns for sections of rows: the CRC-32 of zlib as eight hexadecimal digits. */
export function digest(sections) {
  let crc = summed(-1, "[");
  let isFirst = true;
  for (const { rows } of sections) {
    crc = summed(crc, isFirst ? "[" : ",[");
    isFirst = false;
    let separator = "";
    for (const row of rows) {
      crc = summed(summed(crc, separator), row.text);
      separator = ",";
    }
    crc = summed(crc, "]");
  }
  return (~summed(crc, "]") >>> 0).toString(16).padStart(8, "0");
}
