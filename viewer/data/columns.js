// Columns of numbers from the bytes that the page carries: planes of low bytes, next bytes,
// and so on; `steps` hold the difference to the number before, its sign in the lowest bit.

/** @typedef {{ name: string, coding: "plain" | "steps", width: number, length: number, wide: boolean }} Described */

/** @param {Described[]} descriptions @param {Uint8Array} data */
export function decodeColumns(descriptions, data) {
  /** @type {Columns} */
  const columns = {};
  let offset = 0;
  for (const { name, coding, width, length, wide } of descriptions) {
    const numbers = width > 4 || wide ? joinWide(data, offset, width, length) : join(data, offset, width, length);
    columns[name] = coding === "steps" ? accumulate(numbers, wide) : numbers;
    offset += width * length;
  }
  return columns;
}

/** @param {Uint8Array} data @param {number} offset @param {number} width @param {number} length */
function join(data, offset, width, length) {
  const Numbers = width <= 1 ? Uint8Array : width === 2 ? Uint16Array : Uint32Array;
  const numbers = new Numbers(length);
  for (let plane = 0; plane < width; plane += 1) {
    const start = offset + plane * length;
    const shift = 8 * plane;
    for (let at = 0; at < length; at += 1) numbers[at] |= data[start + at] << shift;
  }
  return numbers;
}

/** @param {Uint8Array} data @param {number} offset @param {number} width @param {number} length */
function joinWide(data, offset, width, length) {
  const numbers = new Float64Array(length);
  for (let plane = 0; plane < width; plane += 1) {
    const start = offset + plane * length;
    const scale = 256 ** plane;
    for (let at = 0; at < length; at += 1) numbers[at] += data[start + at] * scale;
  }
  return numbers;
}

/** @param {Column} steps @param {boolean} wide */
function accumulate(steps, wide) {
  const numbers = wide ? new Float64Array(steps.length) : new Uint32Array(steps.length);
  let number = 0;
  for (let at = 0; at < steps.length; at += 1) {
    const step = steps[at];
    number += step % 2 === 1 ? -(step + 1) / 2 : step / 2;
    numbers[at] = number;
  }
  return numbers;
}
