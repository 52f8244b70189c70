// A real generation with llama.cpp, as node-llama-cpp publishes it.
// Arguments: the model's path, the number of tokens, the number of threads.
import {getLlama, LlamaCompletion, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, tokens, threads] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: 1024, threads: Number(threads)});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const prompt = "Once upon a time, in a land far away, there lived a llama.";
let first, count = 0;
const onToken = (chunk) => { first ??= performance.now(); count += chunk.length; };
const options = {maxTokens: Number(tokens), seed: 1, onToken};
const text = await completion.generateCompletion(prompt, options);
// From the first token on, which is when the prompt has been computed.
console.error(`tokens_per_second=${(1000 * (count - 1) / (performance.now() - first)).toFixed(2)}`);
// What was generated, in a form that can be compared.
console.log(Buffer.from(text).toString("hex"));
await llama.dispose();
