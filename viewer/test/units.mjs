// Whether the page says numbers as the reports do: `units.mjs TABLE`, whose lines are a unit, a number and
// its words. Needs no browser.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as units from "../data/units.js";

const lines = (await readFile(process.argv[2], "utf8")).trim().split("\n").map((line) => line.split("\t"));
assert.ok(lines.length > 100);
for (const [unit, number, words] of lines) assert.equal(units[unit](Number(number)), words, `${unit} of ${number}`);
