//! Functions under other names, with other arguments.

use super::{Change, change, edit};

const HEADER: &str = "include/ggml.h";
const TENSORS: &str = "src/ggml.c";
const BACKENDS: &str = "src/ggml-backend.cpp";
const CPU_GRAPHS: &str = "src/ggml-cpu/ggml-cpu.c";
const CPU_HEADER: &str = "src/ggml-cpu/ggml-cpu-impl.h";
const TRAITS_HEADER: &str = "src/ggml-cpu/traits.h";
const TRAITS: &str = "src/ggml-cpu/traits.cpp";

pub(in crate::changed_ggml) const SYNCHRONIZE_RENAMED: Change = change(
    "ggml_backend_synchronize under another name",
    &[edit(
        BACKENDS,
        "#include \"ggml-backend.h\"\n",
        "#define ggml_backend_synchronize forks_backend_synchronize\n#include \"ggml-backend.h\"\n",
    )],
);

pub(in crate::changed_ggml) const GET_DATA_RENAMED: Change = change(
    "ggml_get_data under another name",
    &[edit(
        TENSORS,
        "#include \"ggml-backend.h\"\n",
        "#define ggml_get_data forks_get_data\n#include \"ggml-backend.h\"\n",
    )],
);

pub(in crate::changed_ggml) const OP_NAME_RENAMED: Change = change(
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

pub(in crate::changed_ggml) const VERSION_NUMBER: Change = change(
    "ggml_version returns a number",
    &[
        edit(HEADER, "const char * ggml_version(void);", "long ggml_version(void);"),
        edit(
            TENSORS,
            "const char * ggml_version(void) {\n    return GGML_VERSION;",
            "long ggml_version(void) {\n    return 28;",
        ),
    ],
);

/// The function takes the memory after a caller's shorter struct for pointers, and follows them.
pub(in crate::changed_ggml) const INIT_PARAMS: Change = change(
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

pub(in crate::changed_ggml) const COMPUTE_PARAMS: Change = change(
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

/// More arguments than there are registers for: the last one is on the stack.
pub(in crate::changed_ggml) const BARRIER_ARGUMENTS: Change = change(
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
pub(in crate::changed_ggml) const ANNOUNCEMENT_ARGUMENTS: Change = change(
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

/// As in ik_llama.cpp: the function that computes a node computes the one behind it as well, where
/// it likes to, and gives back how far it came.
pub(in crate::changed_ggml) const COMPUTES_AHEAD: Change = change(
    "nodes computed together by the function for one",
    &[
        edit(
            CPU_GRAPHS,
            "static void ggml_compute_forward(struct ggml_compute_params * params, \
             struct ggml_tensor * tensor) {\n",
            "static void compute_one(struct ggml_compute_params *, struct ggml_tensor *);
__attribute__((noinline, noclone)) static int ggml_compute_forward(
        struct ggml_compute_params * params, struct ggml_tensor * tensor,
        const struct ggml_cgraph * graph, int i) {
    compute_one(params, tensor);
    struct ggml_tensor * next = i + 1 < graph->n_nodes ? graph->nodes[i + 1] : NULL;
    if (!next || ggml_op_is_empty(next->op) || !(next->flags & GGML_TENSOR_FLAG_COMPUTE)) {
        return i;
    }
    ggml_barrier(params->threadpool);
    compute_one(params, next);
    return i + 1;
}
static void compute_one(struct ggml_compute_params * params, struct ggml_tensor * tensor) {
",
        ),
        edit(
            CPU_GRAPHS,
            "    if (ggml_cpu_extra_compute_forward(params, tensor)) {\n        return;\n    }\n",
            "",
        ),
        edit(
            CPU_GRAPHS,
            "            ggml_compute_forward(&params, node);\n",
            "            node_n = ggml_compute_forward(&params, node, cgraph, node_n);\n",
        ),
    ],
);
