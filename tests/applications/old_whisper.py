# Listens to two seconds of a tone with an old whisper.cpp and prints what it makes of them.
# Arguments: the library, the model, decoded tokens, threads.
import ctypes
import math
import sys

path, model, tokens, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
whisper = ctypes.CDLL(path)
whisper.whisper_init_from_file.restype = ctypes.c_void_p
whisper.whisper_get_logits.restype = ctypes.POINTER(ctypes.c_float)
context = ctypes.c_void_p(whisper.whisper_init_from_file(model.encode()))
tone = (ctypes.c_float * 32000)(*(math.sin(i / 20) for i in range(32000)))
if whisper.whisper_pcm_to_mel(context, tone, len(tone), threads) != 0:
    sys.exit("it cannot be heard")
if whisper.whisper_encode(context, 0, threads) != 0:
    sys.exit("it cannot be encoded")
for past in range(tokens):
    if whisper.whisper_decode(context, (ctypes.c_int * 1)(50257), 1, past, threads) != 0:
        sys.exit("it cannot be decoded")
    print(sum(whisper.whisper_get_logits(context)[: whisper.whisper_n_vocab(context)]))
whisper.whisper_free(context)
