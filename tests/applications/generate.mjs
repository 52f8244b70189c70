// A real generation with llama.cpp, as node-llama-cpp publishes it.
// Arguments: the model's path, the number of tokens, the number of threads, and for Vulkan how
// many layers are computed there.
import {getLlama, LlamaCompletion, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, tokens, threads, vulkanLayers] = process.argv.slice(2);
const gpu = vulkanLayers === undefined ? false : "vulkan";
const llama = await getLlama({gpu, build: "never", logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath, gpuLayers: Number(vulkanLayers ?? 0)});
const context = await model.createContext({contextSize: 1024, threads: Number(threads)});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const story = "Once upon a time, in a land far away, there lived a llama.";
// Mesa's software device of 2022 crashes on long prompts of models with experts.
const prompt = gpu ? story.slice(0, 4) : story;
let first, count = 0;
const onToken = (chunk) => { first ??= performance.now(); count += chunk.length; };
const options = {maxTokens: Number(tokens), seed: 1, onToken};
const text = await completion.generateCompletion(prompt, options);
// From the first token on, which is when the prompt has been computed.
console.error(`tokens_per_second=${(1000 * (count - 1) / (performance.now() - first)).toFixed(2)}`);
// What was generated, in a form that can be compared.
console.log(Buffer.from(text).toString("hex"));
await llama.dispose();
