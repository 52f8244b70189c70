# Generates tokens with libllama through Python bindings, which ask the loader for each function.
# Arguments: the model, tokens, threads. Prints how long it took, in milliseconds.
import sys
import time

from llama_cpp_py_sync import Llama

model, tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
llm = Llama(model, n_ctx=512, n_threads=threads)
start = time.perf_counter()
llm.generate("Once upon a time", max_tokens=tokens, temperature=0.0)
print(f"generated_ms={(time.perf_counter() - start) * 1000:.3f}")
