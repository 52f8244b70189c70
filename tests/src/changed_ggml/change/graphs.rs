//! Other fields of a graph, or elsewhere.

use super::{Change, change, edit};

const GRAPH_HEADER: &str = "src/ggml-impl.h";
const TENSORS: &str = "src/ggml.c";
const PUBLIC: &str = "include/ggml.h";
const ADD_NODE: &str = "ggml_graph_add_node";
const BACKENDS: &str = "src/ggml-backend.cpp";

const GRAPH_MADE: &str = "        /*.size         =*/ size,\n";
const GRAPH_VIEWED: &str = "        /*.size             =*/ 0,\n";

pub(in crate::changed_ggml) const GRAPH_FIELDS_IN_FRONT: Change = change(
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
pub(in crate::changed_ggml) const GRAPH_REORDERED: Change = change(
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

/// The array of nodes comes after others.
pub(in crate::changed_ggml) const NODES_ELSEWHERE: Change = change(
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

/// A graph's arrays are not in the memory of its context, so where its head ends cannot be seen.
pub(in crate::changed_ggml) const ARRAYS_ELSEWHERE: Change = change(
    "a graph's arrays in memory of their own",
    &[
        edit(TENSORS, "    void * p = cgraph + 1;\n", "    void * p = calloc(1, obj_size);\n"),
        edit(TENSORS, "    assert(obj_size == (size_t)((char *)p - (char *)cgraph));\n", ""),
    ],
);

/// What is called by the name of ggml's function takes its arguments in another order, and the public way is
/// gone.
pub(in crate::changed_ggml) const NO_WAY_TO_VIEW: Change = change(
    "ggml_graph_view with other arguments and no ggml_graph_add_node",
    &[
        edit(
            GRAPH_HEADER,
            "ggml_graph_view(struct ggml_cgraph * cgraph, int i0, int i1)",
            "ggml_graph_view(int i0, int i1, struct ggml_cgraph * cgraph)",
        ),
        edit(
            TENSORS,
            "ggml_graph_view(struct ggml_cgraph * cgraph0, int i0, int i1)",
            "ggml_graph_view(int i0, int i1, struct ggml_cgraph * cgraph0)",
        ),
        edit(
            BACKENDS,
            "ggml_graph_view(graph, split->i_start, split->i_end)",
            "ggml_graph_view(split->i_start, split->i_end, graph)",
        ),
        edit(
            BACKENDS,
            "ggml_graph_view(&split->graph, j0, j1 + 1)",
            "ggml_graph_view(j0, j1 + 1, &split->graph)",
        ),
        edit(BACKENDS, "ggml_graph_view(g1, i, i + 1)", "ggml_graph_view(i, i + 1, g1)"),
        edit(BACKENDS, "ggml_graph_view(g2, i, i + 1)", "ggml_graph_view(i, i + 1, g2)"),
        edit(PUBLIC, ADD_NODE, "ggml_graph_append_node"),
        edit(TENSORS, ADD_NODE, "ggml_graph_append_node"),
    ],
);
