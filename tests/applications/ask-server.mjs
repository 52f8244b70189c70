// Starts a llama-server, asks it for tokens, ends it.
// Arguments: the number of tokens, then the server's command, which gets a port.
import {spawn} from "node:child_process";
import {createServer} from "node:net";
import {createInterface} from "node:readline";

const [tokens, program, ...words] = process.argv.slice(2);
const port = await new Promise((found) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
        const {port} = server.address();
        server.close(() => found(port));
    });
});
const server = spawn(program, [...words, "--port", String(port)], {stdio: ["ignore", "ignore", "pipe"]});
const ended = new Promise((done) => server.on("exit", done));
// What ggprof says of it is passed on; its own lines differ from run to run.
createInterface({input: server.stderr}).on("line", (line) => {
    if (line.startsWith("ggprof: ")) console.error(line);
});
const address = `http://127.0.0.1:${port}`;
const isUp = () => fetch(`${address}/health`).then((answer) => answer.ok, () => false);
while (!await isUp()) {
    if (server.exitCode !== null || server.signalCode !== null) process.exit(1);
    await new Promise((later) => setTimeout(later, 50));
}
const body = {prompt: "Once upon a time", n_predict: Number(tokens), temperature: 0, ignore_eos: true};
const asked = await fetch(`${address}/completion`, {method: "POST", body: JSON.stringify(body)});
const answer = await asked.json();
console.error(`tokens_per_second=${answer.timings.predicted_per_second.toFixed(2)}`);
console.log(Buffer.from(answer.content).toString("hex"));
server.kill("SIGTERM");
await ended;
