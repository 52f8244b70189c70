# Generates tokens with any libllama of 2024 or later. Arguments: the library, the model, tokens, threads.
# Structs go from one of its functions to the other without a look at them: more room than they have does
# no harm, because each is the last argument.
import ctypes
import sys

path, model, tokens, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
llama = ctypes.CDLL(path)


class Struct(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 768)]


def function(names, result, *arguments):
    found = next(getattr(llama, name) for name in names.split() if hasattr(llama, name))
    found.restype, found.argtypes = result, list(arguments)
    return found


POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int32
function("llama_backend_init", None)()
load = function("llama_model_load_from_file llama_load_model_from_file", POINTER, ctypes.c_char_p, Struct)
model = load(model.encode(), function("llama_model_default_params", Struct)())
begin = function("llama_init_from_model llama_new_context_with_model", POINTER, POINTER, Struct)
context = begin(model, function("llama_context_default_params", Struct)())
function("llama_set_n_threads", None, POINTER, NUMBER, NUMBER)(context, threads, threads)
decode = function("llama_decode", NUMBER, POINTER, Struct)
batch_of = function("llama_batch_get_one", Struct, POINTER, NUMBER, NUMBER, NUMBER)
logits = function("llama_get_logits", ctypes.POINTER(ctypes.c_float), POINTER)
batch, past = [5, 6, 7, 8, 9], 0
for _ in range(tokens):
    kept = (NUMBER * len(batch))(*batch)
    # Newer ones take the first two arguments.
    if decode(context, batch_of(kept, len(batch), past, 0)) != 0:
        sys.exit("it cannot be decoded")
    past += len(batch)
    values = logits(context)[:1024]
    batch = [values.index(max(values))]
    print(batch[0], max(values))
function("llama_free", None, POINTER)(context)
function("llama_model_free llama_free_model", None, POINTER)(model)
