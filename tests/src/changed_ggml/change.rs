//! What people do to ggml's source, as text to replace: nothing of it is applied to a file of
//! another text.

/// A changed ggml.
#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) name: &'static str,
    pub(super) edits: &'static [Edit],
    /// For the compiler, of ggml's sources and of programs.
    pub(super) flags: &'static [&'static str],
}

/// Text of a file, relative to ggml's directory, and what stands in its place.
#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) file: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Edit {
    /// The text with every occurrence replaced; an error where there is none.
    pub(super) fn applied(&self, text: &str) -> Result<String, String> {
        if !text.contains(self.from) {
            return Err(format!("{} has no text to replace:\n{}", self.file, self.from));
        }
        Ok(text.replace(self.from, self.to))
    }
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

const fn change(name: &'static str, edits: &'static [Edit]) -> Change {
    Change { name, edits, flags: &[] }
}

const HEADER: &str = "include/ggml.h";
const BACKEND_HEADER: &str = "src/ggml-backend-impl.h";
const GRAPH_HEADER: &str = "src/ggml-impl.h";
const TENSORS: &str = "src/ggml.c";
const BACKENDS: &str = "src/ggml-backend.cpp";
const CPU_BACKEND: &str = "src/ggml-cpu/ggml-cpu.cpp";
const CPU_GRAPHS: &str = "src/ggml-cpu/ggml-cpu.c";
const CPU_HEADER: &str = "src/ggml-cpu/ggml-cpu-impl.h";
const TRAITS_HEADER: &str = "src/ggml-cpu/traits.h";
const TRAITS: &str = "src/ggml-cpu/traits.cpp";

pub(super) const UNCHANGED: Change = change("unchanged", &[]);

/// As in-tree profilers do: a further pointer behind all others of a backend, to a function
/// that is called.
const PROFILER: Edit = edit(
    BACKEND_HEADER,
    "        void * context;
    };

    struct ggml_backend_event {",
    "        void * context;
        struct ggml_backend_profiler { void (*note)(void); } * profiler;
    };

    struct ggml_backend_event {",
);

const FREE_FOLLOWS: Edit = edit(
    BACKENDS,
    "    backend->iface.free(backend);\n",
    "    if (backend->profiler) { backend->profiler->note(); }\n    backend->iface.free(backend);\n",
);

const COMPUTE_FOLLOWS: Edit = edit(
    BACKENDS,
    "    return backend->iface.graph_compute(backend, cgraph);\n",
    "    if (backend->profiler) { backend->profiler->note(); }
    return backend->iface.graph_compute(backend, cgraph);\n",
);

const SYNCHRONIZE_FOLLOWS: Edit = edit(
    BACKENDS,
    "void ggml_backend_synchronize(ggml_backend_t backend) {\n    GGML_ASSERT(backend);\n",
    "void ggml_backend_synchronize(ggml_backend_t backend) {
    GGML_ASSERT(backend);
    if (backend->profiler) { backend->profiler->note(); }\n",
);

pub(super) const POINTER_OF_FREE: Change =
    change("ggml_backend_free follows a pointer", &[PROFILER, FREE_FOLLOWS]);

pub(super) const POINTER_OF_COMPUTE: Change =
    change("ggml_backend_graph_compute follows a pointer", &[PROFILER, COMPUTE_FOLLOWS]);

pub(super) const POINTER_OF_SYNCHRONIZE: Change =
    change("ggml_backend_synchronize follows a pointer", &[PROFILER, SYNCHRONIZE_FOLLOWS]);

/// Every backend has a profiler, and nobody asks whether it does.
pub(super) const POINTER_ALWAYS_SET: Change = change(
    "a pointer that is always followed",
    &[
        PROFILER,
        edit(
            BACKENDS,
            "    backend->iface.free(backend);\n",
            "    backend->profiler->note();\n    backend->iface.free(backend);\n",
        ),
        edit(
            BACKENDS,
            "    return backend->iface.graph_compute(backend, cgraph);\n",
            "    backend->profiler->note();
    return backend->iface.graph_compute(backend, cgraph);\n",
        ),
        edit(
            BACKENDS,
            "    GGML_ASSERT(backend);\n    if (backend->iface.synchronize == NULL) {",
            "    backend->profiler->note();\n    if (backend->iface.synchronize == NULL) {",
        ),
        edit(
            CPU_BACKEND,
            "        /* .context = */ ctx,\n    };",
            "        /* .context  = */ ctx,
        /* .profiler = */ new ggml_backend::ggml_backend_profiler { [] {} },
    };",
        ),
    ],
);

pub(super) const FIELDS_IN_TABLE: Change = change(
    "fields in the middle of the backend's table",
    &[
        edit(
            BACKEND_HEADER,
            "        // (optional) complete all pending operations",
            "        void (*inserted[5])(ggml_backend_t backend);

        // (optional) complete all pending operations",
        ),
        edit(
            CPU_BACKEND,
            "    /* .synchronize             = */ NULL,\n",
            "    /* .inserted                = */ { NULL },
    /* .synchronize             = */ NULL,\n",
        ),
    ],
);

pub(super) const FIELDS_BEFORE_TABLE: Change = change(
    "fields before the backend's table",
    &[
        edit(
            BACKEND_HEADER,
            "        ggml_guid_t guid;\n",
            "        size_t in_front[3];\n        ggml_guid_t guid;\n",
        ),
        edit(
            CPU_BACKEND,
            "        /* .guid    = */ ggml_backend_cpu_guid(),",
            "        { 1, 2, 3 }, /* .guid = */ ggml_backend_cpu_guid(),",
        ),
    ],
);

/// No guess of how large a backend may be reaches the table.
pub(super) const MUCH_BEFORE_TABLE: Change = change(
    "a page of fields before the backend's table",
    &[
        edit(
            BACKEND_HEADER,
            "        ggml_guid_t guid;\n",
            "        size_t in_front[512];\n        ggml_guid_t guid;\n",
        ),
        edit(
            CPU_BACKEND,
            "        /* .guid    = */ ggml_backend_cpu_guid(),",
            "        { 1 }, /* .guid = */ ggml_backend_cpu_guid(),",
        ),
    ],
);

pub(super) const LONGER_TENSOR: Change = change(
    "a longer tensor",
    &[edit(HEADER, "        char padding[8];\n", "        char padding[8];\n        size_t more[4];\n")],
);

pub(super) const SHORTER_TENSOR: Change = change(
    "a shorter tensor",
    &[
        edit(HEADER, "#define GGML_MAX_SRC            10", "#define GGML_MAX_SRC            8"),
        edit(HEADER, "#   define GGML_MAX_NAME        64", "#   define GGML_MAX_NAME        32"),
    ],
);

/// What counts four of something says so by assertions, which are left out.
pub(super) const FIVE_DIMENSIONS: Change = Change {
    name: "tensors of five dimensions",
    edits: &[
        edit(HEADER, "#define GGML_MAX_DIMS           4", "#define GGML_MAX_DIMS           5"),
        edit(
            TENSORS,
            "        /*.ne           =*/ { 1, 1, 1, 1 },",
            "        /*.ne           =*/ { 1, 1, 1, 1, 1 },",
        ),
        edit(
            TENSORS,
            "    ne[axis3] = a->ne[3];\n",
            "    ne[axis3] = a->ne[3];\n    ne[4] = a->ne[4];\n    nb[4] = a->nb[4];\n",
        ),
    ],
    flags: &["-Dstatic_assert(...)=", "-D_Static_assert(...)="],
};

pub(super) const SIXTEEN_SOURCES: Change = change(
    "tensors of sixteen sources",
    &[edit(HEADER, "#define GGML_MAX_SRC            10", "#define GGML_MAX_SRC            16")],
);

pub(super) const LONG_NAMES: Change = Change {
    name: "tensors with names of 128 bytes",
    edits: &[],
    flags: &["-DGGML_MAX_NAME=128"],
};

pub(super) const TENSOR_REORDERED: Change = change(
    "a tensor's name before its data",
    &[
        edit(HEADER, "        void * data;\n\n        char name[GGML_MAX_NAME];\n", ""),
        edit(
            HEADER,
            "        // source tensor and offset for views\n",
            "        char name[GGML_MAX_NAME];\n\n        void * data;\n\n",
        ),
        edit(
            TENSORS,
            "        /*.view_src     =*/ view_src,
        /*.view_offs    =*/ view_offs,
        /*.data         =*/ obj_alloc_size > 0 ? (void *)(result + 1) : data,
        /*.name         =*/ { 0 },\n",
            "        /*.name         =*/ { 0 },
        /*.data         =*/ obj_alloc_size > 0 ? (void *)(result + 1) : data,
        /*.view_src     =*/ view_src,
        /*.view_offs    =*/ view_offs,\n",
        ),
    ],
);

const GRAPH_MADE: &str = "        /*.size         =*/ size,\n";
const GRAPH_VIEWED: &str = "        /*.size             =*/ 0,\n";

pub(super) const GRAPH_FIELDS_IN_FRONT: Change = change(
    "fields in front of a graph",
    &[
        edit(
            GRAPH_HEADER,
            "    int size;    // maximum number of nodes",
            "    size_t in_front[2];\n    int size;    // maximum number of nodes",
        ),
        edit(TENSORS, GRAPH_MADE, "        { 1, 2 }, /*.size         =*/ size,\n"),
        edit(TENSORS, GRAPH_VIEWED, "        { 1, 2 }, /*.size             =*/ 0,\n"),
    ],
);

/// The fields are named where they were told by their order.
pub(super) const GRAPH_REORDERED: Change = change(
    "a graph's fields in another order",
    &[
        edit(
            GRAPH_HEADER,
            "    int n_nodes; // number of nodes currently in use
    int n_leafs; // number of leafs currently in use

    struct ggml_tensor ** nodes;     // tensors with data that can change if the graph is evaluated\n",
            "",
        ),
        edit(
            GRAPH_HEADER,
            "    struct ggml_hash_set visited_hash_set;\n\n    enum ggml_cgraph_eval_order order;\n",
            "    struct ggml_hash_set visited_hash_set;

    enum ggml_cgraph_eval_order order;

    struct ggml_tensor ** nodes;
    int n_leafs;
    int n_nodes;\n",
        ),
        edit(
            TENSORS,
            "        /*.n_nodes      =*/ 0,
        /*.n_leafs      =*/ 0,
        /*.nodes        =*/ nodes_ptr,\n",
            "",
        ),
        edit(
            TENSORS,
            "        /*.order        =*/ GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,\n",
            "        /*.order        =*/ GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,\n        nodes_ptr, 0, 0,\n",
        ),
        edit(
            TENSORS,
            "        /*.n_nodes          =*/ i1 - i0,
        /*.n_leafs          =*/ 0,
        /*.nodes            =*/ cgraph0->nodes + i0,\n",
            "",
        ),
        edit(
            TENSORS,
            "        /*.order            =*/ cgraph0->order,\n",
            "        /*.order            =*/ cgraph0->order,\n        cgraph0->nodes + i0, 0, i1 - i0,\n",
        ),
    ],
);

/// The array of nodes stands behind others, and not first.
pub(super) const NODES_ELSEWHERE: Change = change(
    "a graph's nodes far from its head",
    &[
        edit(
            TENSORS,
            "    struct ggml_tensor ** nodes_ptr      =         incr_ptr_aligned(&p, size      * sizeof(struct ggml_tensor *), sizeof(struct ggml_tensor *));\n",
            "",
        ),
        edit(
            TENSORS,
            "    struct ggml_tensor ** hash_keys_ptr  =",
            "    struct ggml_tensor ** nodes_ptr =
        incr_ptr_aligned(&p, size * sizeof(struct ggml_tensor *), sizeof(struct ggml_tensor *));
    struct ggml_tensor ** hash_keys_ptr  =",
        ),
    ],
);

pub(super) const SYNCHRONIZE_RENAMED: Change = change(
    "ggml_backend_synchronize under another name",
    &[edit(
        BACKENDS,
        "#include \"ggml-backend.h\"\n",
        "#define ggml_backend_synchronize forks_backend_synchronize\n#include \"ggml-backend.h\"\n",
    )],
);

pub(super) const GET_DATA_RENAMED: Change = change(
    "ggml_get_data under another name",
    &[edit(
        TENSORS,
        "#include \"ggml-backend.h\"\n",
        "#define ggml_get_data forks_get_data\n#include \"ggml-backend.h\"\n",
    )],
);

pub(super) const OP_NAME_RENAMED: Change = change(
    "ggml_op_name under another name",
    &[
        edit(
            TENSORS,
            "#include \"ggml-backend.h\"\n",
            "#define ggml_op_name forks_op_name\n#include \"ggml-backend.h\"\n",
        ),
        edit(BACKENDS, "ggml_op_name(tensor->op)", "\"op\""),
        edit(CPU_GRAPHS, "ggml_op_name(node->op)", "\"op\""),
    ],
);

/// Whatever lies behind a caller's shorter struct is taken for pointers, and followed.
pub(super) const INIT_PARAMS: Change = change(
    "ggml_init_params with more fields",
    &[
        edit(
            HEADER,
            "        bool   no_alloc;   // don't allocate memory for the tensor data\n",
            "        bool   no_alloc;   // don't allocate memory for the tensor data
        const char * labels[16];\n",
        ),
        edit(
            TENSORS,
            "    static bool is_first_call = true;\n",
            "    static bool is_first_call = true;
    for (int i = 0; i < 16; i++) {
        GGML_ASSERT(params.labels[i] == NULL || params.labels[i][0] != '!');
    }\n",
        ),
    ],
);

pub(super) const COMPUTE_PARAMS: Change = change(
    "fields in front of ggml_compute_params",
    &[
        edit(CPU_HEADER, "    int ith, nth;\n", "    size_t in_front[2];\n    int ith, nth;\n"),
        edit(
            CPU_GRAPHS,
            "        /*.ith        =*/ state->ith,",
            "        { 7, (size_t) -1 }, /*.ith        =*/ state->ith,",
        ),
    ],
);

/// More arguments than there are registers for: the last one lies on the stack.
pub(super) const BARRIER_ARGUMENTS: Change = change(
    "ggml_barrier with other arguments",
    &[
        edit(
            CPU_HEADER,
            "void ggml_barrier(struct ggml_threadpool * tp);\n",
            "void ggml_barrier(struct ggml_threadpool * tp, int b, int c, int d, int e, int f, int sign);
#define ggml_barrier(tp) ggml_barrier((tp), 2, 3, 4, 5, 6, 7)\n",
        ),
        edit(
            CPU_GRAPHS,
            "void ggml_barrier(struct ggml_threadpool * tp) {\n",
            "void (ggml_barrier)(struct ggml_threadpool * tp, int b, int c, int d, int e, int f, int sign) {
    GGML_ASSERT(b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && sign == 7);\n",
        ),
    ],
);

/// The same for the call that announces an op.
pub(super) const ANNOUNCEMENT_ARGUMENTS: Change = change(
    "ggml_cpu_extra_compute_forward with other arguments",
    &[
        edit(
            TRAITS_HEADER,
            "struct ggml_tensor * op);",
            "struct ggml_tensor * op, int c, int d, int e, int f, int sign);",
        ),
        edit(
            TRAITS,
            "bool ggml_cpu_extra_compute_forward(struct ggml_compute_params * params, struct ggml_tensor * op) {\n",
            "bool ggml_cpu_extra_compute_forward(struct ggml_compute_params * params, struct ggml_tensor * op, \
int c, int d, int e, int f, int sign) {
    GGML_ASSERT(c == 3 && d == 4 && e == 5 && f == 6 && sign == 7);\n",
        ),
        edit(
            CPU_GRAPHS,
            "    if (ggml_cpu_extra_compute_forward(params, tensor)) {",
            "    if (ggml_cpu_extra_compute_forward(params, tensor, 3, 4, 5, 6, 7)) {",
        ),
    ],
);
