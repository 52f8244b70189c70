// A real generation with llama.cpp, as node-llama-cpp publishes it.
// Arguments: the model's path, the number of tokens, the number of threads, and for Vulkan how
// many layers are computed there. GENERATE_WISHES may hold more, as JSON: pauseMs between two tokens,
// and options of the context.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, tokens, threads, vulkanLayers] = process.argv.slice(2);
const {pauseMs, ...wishes} = JSON.parse(process.env.GENERATE_WISHES ?? "{}");
const gpu = vulkanLayers === undefined ? false : "vulkan";
const llama = await getLlama({gpu, build: "never", logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath, gpuLayers: Number(vulkanLayers ?? 0)});
const context = await model.createContext({contextSize: 1024, threads: Number(threads), ...wishes});
const story = "Once upon a time, in a land far away, there lived a llama.";
// Mesa's software device of 2022 crashes on long prompts of models with experts.
const prompt = model.tokenize(gpu ? story.slice(0, 4) : story);
let first;
const generated = [];
for await (const token of context.getSequence().evaluate(prompt, {temperature: 0})) {
    // From the first token on, which is when the prompt has been computed.
    first ??= performance.now();
    generated.push(token);
    if (generated.length == tokens) break;
    if (pauseMs) await new Promise((wake) => setTimeout(wake, pauseMs));
}
const seconds = (performance.now() - first) / 1000;
console.error(`tokens_per_second=${((generated.length - 1) / seconds).toFixed(2)}`);
// Tokens, because random weights make few that are text.
console.log(generated.join(" "));
await llama.dispose();
