// Profiling of ggml schedulers from inside the program that uses them.
//
// Link with libggml-profiler.so in any order with ggml's libraries, which stay as they are.
// The names are those of the profiler that was proposed for ggml itself, so that programs
// written for it compile unchanged; functions that returned nothing there return whether
// they succeeded here.
//
// The recording is a file in TMPDIR (or /tmp), about 32 bytes per op and 256 MiB at most
// (GGPROF_MAX_BYTES sets another limit); beyond that the oldest graph runs make room, and the
// reports say so. It is removed when the program ends. Whatever asks for records reads the file
// from its beginning, so ask once in a while, not after every graph.
//
// Nothing here is fatal: errors are returned, and ggml_profiler_last_error() says in words
// what went wrong. Functions may be called from any thread, but not about a scheduler that
// another thread is just computing with.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_sched * ggml_backend_sched_t;

// Results.
#define GGML_PROFILER_OK        0
#define GGML_PROFILER_INVALID  (-1) // a null pointer, a scheduler that was freed, or one that is not profiled
#define GGML_PROFILER_OFF      (-2) // nothing can be recorded in this process
#define GGML_PROFILER_IO       (-3) // the recording could not be read, or the output not written

// Sizes in a record, whatever ggml was built with. Longer names are cut.
#define GGML_PROFILER_MAX_NAME   64
#define GGML_PROFILER_MAX_SRC    10
#define GGML_PROFILER_MAX_PARAMS 16

enum ggml_profile_event_type {
    GGML_PROFILE_EVENT_OP,   // a node computed by a backend
    GGML_PROFILE_EVENT_COPY, // a tensor moved between backends
};

typedef struct ggml_profile_record {
    enum ggml_profile_event_type type;

    const char * name;       // "MUL_MAT"; of a copy "copy_H2D", "copy_D2H", "copy_D2D" or "copy_H2H"
    int          backend_id; // place of the backend in the scheduler
    int          split_id;   // split within its graph run, -1 unknown
    uint64_t     start_ns;   // on CLOCK_MONOTONIC
    uint64_t     end_ns;
    uint64_t     bytes;      // output of an op, data of a copy
    const char * extra;      // all ops that were fused ("RMS_NORM+MUL"), name of a copied tensor, or NULL

    char    tensor_name[GGML_PROFILER_MAX_NAME];
    int64_t ne[4];
    int     out_type; // a ggml_type, -1 unknown

    int     n_src;
    int64_t ne_src[GGML_PROFILER_MAX_SRC][4];
    int64_t nb_src[GGML_PROFILER_MAX_SRC][4]; // strides in bytes, 0 unknown
    int     type_src[GGML_PROFILER_MAX_SRC];  // -1 where there is none

    int32_t op_params[GGML_PROFILER_MAX_PARAMS];
    int     sub_op; // always -1: numbers of sub-ops differ between versions of ggml
} ggml_profile_record;

// Starts or ends recording of what the scheduler computes. Records accumulate over all graph
// computes until they are reset or the scheduler is freed; ending keeps them.
int ggml_backend_sched_set_profiling(ggml_backend_sched_t sched, bool enable);

// Whether the scheduler is being recorded; false for one that is not known.
bool ggml_backend_sched_get_profiling(ggml_backend_sched_t sched);

// The number of records, or an error. They are in order of time within each split, and
// belong to the library: valid until the next call of this function or of
// ggml_backend_sched_reset_profiling for the same scheduler, or until it is freed.
int ggml_backend_sched_get_profiling_records(ggml_backend_sched_t sched, const ggml_profile_record ** records);

// Prints a summary to standard output.
int ggml_backend_sched_print_profiling(ggml_backend_sched_t sched);

// Forgets all records until now.
int ggml_backend_sched_reset_profiling(ggml_backend_sched_t sched);

// Writes the records to a file. One that cannot be completed is removed.
int ggml_backend_sched_export_profiling_json(ggml_backend_sched_t sched, const char * filepath);
int ggml_backend_sched_export_profiling_text(ggml_backend_sched_t sched, const char * filepath);

// The same to an open stream, which is flushed.
int ggml_backend_sched_write_profiling_json(ggml_backend_sched_t sched, FILE * fp);
int ggml_backend_sched_write_profiling_text(ggml_backend_sched_t sched, FILE * fp);

// What went wrong in the last call of this thread that returned an error. Never NULL.
const char * ggml_profiler_last_error(void);

#ifdef __cplusplus
}
#endif
