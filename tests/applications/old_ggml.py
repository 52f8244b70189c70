# Adds numbers with a ggml of spring 2023, which has no backends yet. Arguments: the library, graphs, threads.
import ctypes
import sys


class Params(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("buffer", ctypes.c_void_p)]


class Graph(ctypes.Structure):
    # The struct was shorter, and is returned where its caller has room for it. The number of
    # threads stands behind those of nodes and leafs.
    _fields_ = [("n_nodes", ctypes.c_int), ("n_leafs", ctypes.c_int), ("n_threads", ctypes.c_int)]
    _fields_ += [("rest", ctypes.c_char * (1 << 20))]


path, graphs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ggml = ctypes.CDLL(path)
for name in ["ggml_init", "ggml_new_f32", "ggml_add"]:
    getattr(ggml, name).restype = ctypes.c_void_p
ggml.ggml_init.argtypes = [Params]
ggml.ggml_new_f32.argtypes = [ctypes.c_void_p, ctypes.c_float]
ggml.ggml_get_f32_1d.restype = ctypes.c_float
ggml.ggml_build_forward.restype = Graph
context = ctypes.c_void_p(ggml.ggml_init(Params(1 << 24, None)))
number = ctypes.c_void_p(ggml.ggml_new_f32(context, 0.5))
for _ in range(10):
    number = ctypes.c_void_p(ggml.ggml_add(context, number, number))
graph = ggml.ggml_build_forward(number)
graph.n_threads = threads
for _ in range(graphs):
    ggml.ggml_graph_compute(context, ctypes.byref(graph))
    print(graph.n_nodes, ggml.ggml_get_f32_1d(number, 0))
