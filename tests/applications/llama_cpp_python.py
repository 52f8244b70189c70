# Two requests through llama-cpp-python. Arguments: the model, and what for: `last` (results of the last
# token of a prompt), `all` (of every one) or `embeddings`. Prints a line of JSON for each: what libllama
# itself measured, and how many tokens it was.
import json
import sys

import llama_cpp

model, what = sys.argv[1], sys.argv[2]
embeds = what == "embeddings"
pooling = llama_cpp.LLAMA_POOLING_TYPE_MEAN if embeds else llama_cpp.LLAMA_POOLING_TYPE_UNSPECIFIED
llm = llama_cpp.Llama(
    model, n_ctx=512, n_batch=128, n_threads=1, n_threads_batch=1,
    logits_all=what == "all", embedding=embeds, pooling_type=pooling, verbose=False,
)
# Of a call for which it makes room for more results than before, libllama does not count the time: the
# second request needs no more than the first.
for text in ["many words and many more of them " * 6, "other words, not as many of them " * 5]:
    llama_cpp.llama_perf_context_reset(llm.ctx)
    if embeds:
        usage = llm.create_embedding(text)["usage"]
    else:
        usage = llm.create_completion(text, max_tokens=12, temperature=0, logit_bias={2: -100.0})["usage"]
    perf = llama_cpp.llama_perf_context(llm.ctx)
    print(json.dumps({
        "prompt_tokens": usage["prompt_tokens"],
        "computed_tokens": perf.n_p_eval,
        "generated_tokens": usage.get("completion_tokens", 0),
        "prompt_ms": perf.t_p_eval_ms,
        "eval_ms": perf.t_eval_ms,
    }))
