# Divides the positions of what a context holds, keeps one of its sequences, and removes what can be removed.
# Argument: the model.
import sys

import llama_cpp

llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(
    sys.argv[1].encode(), llama_cpp.llama_model_default_params()
)
params = llama_cpp.llama_context_default_params()
params.n_ctx, params.n_threads, params.n_threads_batch, params.n_seq_max = 256, 1, 1, 2
params.kv_unified = True
context = llama_cpp.llama_init_from_model(model, params)
memory = llama_cpp.llama_get_memory(context)
tokens = (llama_cpp.llama_token * 8)(*range(10, 18))
assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, 8)) == 0
llama_cpp.llama_memory_seq_cp(memory, 0, 1, -1, -1)
llama_cpp.llama_memory_seq_div(memory, 0, 0, -1, 2)
llama_cpp.llama_memory_seq_keep(memory, 1)
assert llama_cpp.llama_memory_seq_rm(memory, 1, 2, -1)
tokens = (llama_cpp.llama_token * 1)(5)
llama_cpp.llama_memory_clear(memory, True)
assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, 1)) == 0
