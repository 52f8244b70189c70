// A generation with @fugood/llama.node, whose llama.cpp is one library built by clang.
// Arguments: the model's path, the number of tokens.
import {loadModel} from "@fugood/llama.node";

const [model, tokens] = process.argv.slice(2);
const context = await loadModel({model, n_ctx: 512, n_threads: 1, n_gpu_layers: 0, use_mmap: true});
const prompt = "Once upon a time, in a land far away, there lived a llama.";
const options = {prompt, n_predict: Number(tokens), temperature: 0, seed: 1, ignore_eos: true};
const answer = await context.completion(options);
console.error(`tokens_per_second=${answer.timings.predicted_per_second.toFixed(2)}`);
console.log(Buffer.from(answer.text).toString("hex"));
await context.release();
