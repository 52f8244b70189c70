# Generates tokens with the llama.cpp inside of ctransformers and prints their numbers.
# Arguments: the library, the model, tokens, threads.
import ctypes
import sys


class Config(ctypes.Structure):
    _fields_ = [
        ("context_length", ctypes.c_int),
        ("gpu_layers", ctypes.c_int),
        ("mmap", ctypes.c_bool),
        ("mlock", ctypes.c_bool),
    ]


path, model, tokens, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
library = ctypes.CDLL(path)
library.ctransformers_llm_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, Config]
library.ctransformers_llm_create.restype = ctypes.c_void_p
library.ctransformers_llm_logits_data.restype = ctypes.POINTER(ctypes.c_float)
llm = library.ctransformers_llm_create(model.encode(), b"llama", Config(128, 0, True, False))
llm = ctypes.c_void_p(llm)
batch, past = [1, 40, 41, 42], 0
for _ in range(tokens):
    words = (ctypes.c_int * len(batch))(*batch)
    if not library.ctransformers_llm_batch_eval(llm, words, len(batch), past, len(batch), threads):
        sys.exit("it cannot be computed")
    past += len(batch)
    logits = library.ctransformers_llm_logits_data(llm)
    logits = logits[: library.ctransformers_llm_logits_size(llm)]
    batch = [logits.index(max(logits))]
    print(batch[0])
library.ctransformers_llm_delete(llm)
