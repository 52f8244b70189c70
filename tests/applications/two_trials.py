# Two contexts of libllama, each tried first: the second one in the middle of what the first one generates.
# Argument: the model.
import sys

import llama_cpp

llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(
    sys.argv[1].encode(), llama_cpp.llama_model_default_params()
)


def context():
    params = llama_cpp.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch = 256, 1, 1
    return llama_cpp.llama_init_from_model(model, params)


def compute(context, count):
    tokens = (llama_cpp.llama_token * count)(*range(10, 10 + count))
    assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, count)) == 0
    llama_cpp.llama_synchronize(context)


def clear(context):
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)


first, second = context(), context()
llama_cpp.llama_set_warmup(first, True)
compute(first, 4)
llama_cpp.llama_set_warmup(first, False)
clear(first)
compute(first, 9)
llama_cpp.llama_set_warmup(second, True)
compute(second, 4)
compute(first, 1)
llama_cpp.llama_set_warmup(second, False)
clear(second)
compute(first, 1)
compute(second, 6)
