// Reads a profile with the package pprof-format, and prints what its values add up to what is at each
// depth of its stacks and how many samples there are, as JSON.
const { readFileSync } = require("node:fs");
const { gunzipSync } = require("node:zlib");
const { Profile } = require("pprof-format");

const profile = Profile.decode(gunzipSync(readFileSync(process.argv[2])));
const text = (number) => profile.stringTable.strings[Number(number)];
const functions = new Map(profile.function.map((it) => [it.id, text(it.name)]));
const frames = new Map(
  profile.location.map((it) => [it.id, functions.get(it.line[0].functionId)]),
);
const types = profile.sampleType.map((it) => text(it.type));
const sums = types.map(() => 0n);
const ops = {};
const depths = [];
for (const sample of profile.sample) {
  sample.value.forEach((value, at) => {
    sums[at] += BigInt(value);
  });
  const stack = sample.locationId.map((id) => frames.get(id)).reverse();
  stack.forEach((frame, depth) => {
    (depths[depth] ??= new Set()).add(frame);
  });
  const labels = Object.fromEntries(sample.label.map((it) => [text(it.key), text(it.str)]));
  const key = `${labels.kind} ${stack[2]} ${labels.backend}`;
  ops[key] = String(BigInt(ops[key] ?? 0) + BigInt(sample.value[types.indexOf("time")]));
}
console.log(
  JSON.stringify({
    sums: Object.fromEntries(types.map((type, at) => [type, String(sums[at])])),
    ops,
    depths: depths.map((names) => [...names]),
    samples: profile.sample.length,
  }),
);
