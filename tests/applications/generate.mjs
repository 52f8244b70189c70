// A real generation with llama.cpp, as node-llama-cpp publishes it.
// Arguments: the model's path, the number of tokens, the number of threads.
import {getLlama, LlamaCompletion, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, tokens, threads] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: 1024, threads: Number(threads)});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const prompt = "Once upon a time, in a land far away, there lived a llama.";
const text = await completion.generateCompletion(prompt, {maxTokens: Number(tokens), seed: 1});
// What was generated, in a form that can be compared.
console.log(Buffer.from(text).toString("hex"));
await llama.dispose();
