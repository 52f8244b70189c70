//! Other fields of a tensor.

use super::{Change, change, edit};

const HEADER: &str = "include/ggml.h";
const TENSORS: &str = "src/ggml.c";

pub(in crate::changed_ggml) const LONGER_TENSOR: Change = change(
    "a longer tensor",
    &[edit(
        HEADER,
        "        char padding[8];\n",
        "        char padding[8];\n        size_t more[4];\n",
    )],
);

pub(in crate::changed_ggml) const SHORTER_TENSOR: Change = change(
    "a shorter tensor",
    &[
        edit(HEADER, "#define GGML_MAX_SRC            10", "#define GGML_MAX_SRC            8"),
        edit(HEADER, "#   define GGML_MAX_NAME        64", "#   define GGML_MAX_NAME        32"),
    ],
);

/// What counts four of something says so by assertions, which are left out.
pub(in crate::changed_ggml) const FIVE_DIMENSIONS: Change = Change {
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

pub(in crate::changed_ggml) const SIXTEEN_SOURCES: Change = change(
    "tensors of sixteen sources",
    &[edit(HEADER, "#define GGML_MAX_SRC            10", "#define GGML_MAX_SRC            16")],
);

pub(in crate::changed_ggml) const LONG_NAMES: Change =
    Change { name: "tensors with names of 128 bytes", edits: &[], flags: &["-DGGML_MAX_NAME=128"] };

pub(in crate::changed_ggml) const TENSOR_REORDERED: Change = change(
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
