// A generation with llama.cpp, as the second major version of node-llama-cpp has it.
// Arguments: the model's path, the number of tokens, the number of threads.
import {LlamaContext, LlamaModel} from "node-llama-cpp";

const [modelPath, tokens, threads] = process.argv.slice(2);
const model = new LlamaModel({modelPath, gpuLayers: 0});
const context = new LlamaContext({model, threads: Number(threads), contextSize: 256});
const generated = [];
for await (const token of context.evaluate(context.encode("Once upon a time"))) {
    generated.push(token);
    if (generated.length == tokens) break;
}
console.log(generated.join(" "));
