// Makes an image larger, twice, with stable-diffusion.cpp, as @qvac/diffusion-cpp on npm has it for the JavaScript
// runtime called Bare. Arguments: the package's directory, a model, threads, pixels a side. Prints what the
// program measured each time, as JSON, and a sum of the new images' bytes.
const [, , place, model, threads, side] = Bare.argv;
const binding = require(place + "/binding.js");

// PNG without compression; the program checks no sums.
function picture(side) {
  const line = 1 + 3 * side;
  const pixels = new Uint8Array(side * line).map((_, at) => (at % line === 0 ? 0 : (at * 7) % 251));
  const number = (value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255);
  const short = (value) => [value & 255, (value >>> 8) & 255];
  const chunk = (name, bytes) => [
    ...number(bytes.length), ...[...name].map((letter) => letter.charCodeAt(0)), ...bytes, ...number(0),
  ];
  const stored = [0x78, 1, 1, ...short(pixels.length), ...short(~pixels.length), ...pixels, ...number(0)];
  return new Uint8Array([
    137, 80, 78, 71, 13, 10, 26, 10,
    ...chunk("IHDR", [...number(side), ...number(side), 8, 2, 0, 0, 0]),
    ...chunk("IDAT", stored),
    ...chunk("IEND", []),
  ]);
}

const config = { threads, device: "cpu", backendsDir: place + "/prebuilds" };
const upscaler = binding.createUpscalerInstance({}, { esrganPath: model, config }, told);
let sum = 0;
let left = 2;
binding.activateUpscaler(upscaler);
upscale();

function upscale() {
  binding.runUpscaleJob(upscaler, { type: "image", input: picture(Number(side)), params: '{"repeats":1}' });
}

function told(_, event, data, error) {
  if (error) {
    console.error(String(event), String(error));
    Bare.exit(1);
  }
  if (data instanceof Uint8Array) {
    sum = data.reduce((sum, byte) => (sum * 31 + byte) >>> 0, sum);
  } else if (data && typeof data === "object") {
    console.log(JSON.stringify(data));
    left -= 1;
    if (left > 0) return upscale();
    console.log("image=" + sum.toString(16));
    binding.destroyInstance(upscaler);
    Bare.exit(0);
  }
}
