# Opens a library that hides a ggml of its own, as a Python module would be, and lets it compute.
# Arguments: the library, and those of its function `compute`.
import ctypes
import sys

words = [word.encode() for word in sys.argv[1:]]
library = ctypes.CDLL(sys.argv[1])
sys.exit(library.compute(len(words), (ctypes.c_char_p * len(words))(*words)))
