//! Other fields of a backend.

use super::{Change, Edit, change, edit};

const BACKEND_HEADER: &str = "src/ggml-backend-impl.h";
const BACKENDS: &str = "src/ggml-backend.cpp";
const CPU_BACKEND: &str = "src/ggml-cpu/ggml-cpu.cpp";

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

pub(in crate::changed_ggml) const POINTER_OF_FREE: Change =
    change("ggml_backend_free follows a pointer", &[PROFILER, FREE_FOLLOWS]);

pub(in crate::changed_ggml) const POINTER_OF_COMPUTE: Change =
    change("ggml_backend_graph_compute follows a pointer", &[PROFILER, COMPUTE_FOLLOWS]);

pub(in crate::changed_ggml) const POINTER_OF_SYNCHRONIZE: Change =
    change("ggml_backend_synchronize follows a pointer", &[PROFILER, SYNCHRONIZE_FOLLOWS]);

/// ggml assumes that every backend has a profiler, without a check.
pub(in crate::changed_ggml) const POINTER_ALWAYS_SET: Change = change(
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

pub(in crate::changed_ggml) const FIELDS_IN_TABLE: Change = change(
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

pub(in crate::changed_ggml) const FIELDS_BEFORE_TABLE: Change = change(
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
pub(in crate::changed_ggml) const MUCH_BEFORE_TABLE: Change = change(
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
