// The recording out of the page's data block: base64, deflated, JSON in front of columns.

import { decodeColumns } from "./columns.js";

/** @param {string} base64 */
export async function readEmbedded(base64) {
  const inflated = await unpacked(base64);
  const length = new DataView(inflated).getUint32(0, true);
  /** @type {Tables & { columns: import("./columns.js").Described[] }} */
  const tables = JSON.parse(new TextDecoder().decode(new Uint8Array(inflated, 4, length)));
  const columns = decodeColumns(tables.columns, new Uint8Array(inflated, 4 + length));
  return { tables, columns };
}

// The bytes of the block.
/** @param {string} base64 @returns {Promise<ArrayBuffer>} */
export function unpacked(base64) {
  return inflate(toBytes(base64));
}

/** @param {string} base64 */
function toBytes(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** @param {BlobPart} bytes */
function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
