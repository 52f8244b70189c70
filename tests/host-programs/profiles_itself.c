// A program that links ggml and libggml-profiler, and checks every function of the latter.
// argv[1]: ggml's libraries; argv[2]: a directory to write to.
#include "ggml-profiler.h"
#include <stdlib.h>
#include <string.h>

// Enough of ggml's headers, which its packages of libraries do not have.
typedef void * object;
struct ggml_init_params {
    size_t mem_size;
    void * mem_buffer;
    bool   no_alloc;
};
object ggml_init(struct ggml_init_params);
void   ggml_free(object);
object ggml_new_tensor_2d(object, int, int64_t, int64_t);
object ggml_set_name(object, const char *);
void   ggml_set_input(object);
object ggml_add(object, object, object);
object ggml_new_graph(object);
void   ggml_build_forward_expand(object, object);
void   ggml_backend_load_all_from_path(const char *);
object ggml_backend_init_by_type(int, const char *);
object ggml_backend_get_device(object);
object ggml_backend_dev_backend_reg(object);
object ggml_backend_reg_get_proc_address(object, const char *);
ggml_backend_sched_t ggml_backend_sched_new(object *, object *, int, size_t, bool, bool);
void   ggml_backend_sched_free(ggml_backend_sched_t);
void   ggml_backend_sched_reset(ggml_backend_sched_t);
bool   ggml_backend_sched_alloc_graph(ggml_backend_sched_t, object);
int    ggml_backend_sched_graph_compute(ggml_backend_sched_t, object);

#define CHECK(what)                                                                            \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            printf("line %d: not so: %s (%s)\n", __LINE__, #what, ggml_profiler_last_error()); \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

static object backend;

static ggml_backend_sched_t new_scheduler(void) {
    return ggml_backend_sched_new(&backend, NULL, 1, 256, false, true);
}

// Computes graphs of ten additions each.
static void compute(ggml_backend_sched_t sched, int graphs) {
    for (int i = 0; i < graphs; i++) {
        struct ggml_init_params params = {1 << 20, NULL, true};
        object context = ggml_init(params);
        object tensor = ggml_new_tensor_2d(context, 0, 64, 3);
        ggml_set_input(tensor);
        for (int n = 0; n < 10; n++) {
            tensor = ggml_add(context, tensor, tensor);
        }
        ggml_set_name(tensor, "the last one");
        object graph = ggml_new_graph(context);
        ggml_build_forward_expand(graph, tensor);
        ggml_backend_sched_reset(sched);
        CHECK(ggml_backend_sched_alloc_graph(sched, graph));
        CHECK(ggml_backend_sched_graph_compute(sched, graph) == 0);
        ggml_free(context);
    }
}

static int count(ggml_backend_sched_t sched) {
    const ggml_profile_record * records;
    return ggml_backend_sched_get_profiling_records(sched, &records);
}

static void check_records(ggml_backend_sched_t sched) {
    const ggml_profile_record * records;
    int n = ggml_backend_sched_get_profiling_records(sched, &records);
    CHECK(n == 30);
    for (int i = 0; i < n; i++) {
        const ggml_profile_record * record = &records[i];
        CHECK(record->type == GGML_PROFILE_EVENT_OP);
        CHECK(strcmp(record->name, "ADD") == 0 && record->extra == NULL);
        CHECK(record->backend_id == 0 && record->split_id == 0);
        CHECK(record->start_ns > 0 && record->end_ns >= record->start_ns);
        CHECK(i == 0 || record->start_ns >= records[i - 1].end_ns);
        CHECK(record->bytes == 64 * 3 * 4 && record->out_type == 0);
        CHECK(record->ne[0] == 64 && record->ne[1] == 3 && record->ne[2] == 1);
        CHECK(record->n_src == 2 && record->ne_src[1][1] == 3 && record->nb_src[1][1] == 256);
        CHECK(record->type_src[0] == 0 && record->type_src[2] == -1);
        CHECK((strcmp(record->tensor_name, "the last one") == 0) == (i % 10 == 9));
    }
}

static void check_outputs(ggml_backend_sched_t sched, const char * directory) {
    char path[4096];
    snprintf(path, sizeof path, "%s/exported.json", directory);
    CHECK(ggml_backend_sched_export_profiling_json(sched, path) == GGML_PROFILER_OK);
    snprintf(path, sizeof path, "%s/exported.txt", directory);
    CHECK(ggml_backend_sched_export_profiling_text(sched, path) == GGML_PROFILER_OK);
    snprintf(path, sizeof path, "%s/written", directory);
    FILE * file = fopen(path, "w");
    CHECK(ggml_backend_sched_write_profiling_json(sched, file) == GGML_PROFILER_OK);
    CHECK(ggml_backend_sched_write_profiling_text(sched, file) == GGML_PROFILER_OK);
    fclose(file);
    printf("before the summary\n");
    CHECK(ggml_backend_sched_print_profiling(sched) == GGML_PROFILER_OK);
    printf("behind the summary\n");
}

static void check_errors(ggml_backend_sched_t sched, const char * directory) {
    FILE * full = fopen("/dev/full", "w");
    CHECK(ggml_backend_sched_get_profiling_records(sched, NULL) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_export_profiling_json(sched, NULL) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_write_profiling_json(sched, NULL) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_write_profiling_text(sched, NULL) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_export_profiling_json(sched, "/no/such/file") == GGML_PROFILER_IO);
    CHECK(strstr(ggml_profiler_last_error(), "/no/such/file cannot be written"));
    CHECK(ggml_backend_sched_export_profiling_text(sched, directory) == GGML_PROFILER_IO);
    CHECK(ggml_backend_sched_export_profiling_text(sched, "/dev/full") == GGML_PROFILER_IO);
    CHECK(ggml_backend_sched_write_profiling_json(sched, full) == GGML_PROFILER_IO);
    CHECK(ggml_backend_sched_write_profiling_text(sched, full) == GGML_PROFILER_IO);
}

// A scheduler that was freed, was never profiled, or is none.
static void check_unknown(ggml_backend_sched_t sched) {
    const ggml_profile_record * records;
    CHECK(!ggml_backend_sched_get_profiling(sched));
    CHECK(ggml_backend_sched_set_profiling(sched, false) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_get_profiling_records(sched, &records) == GGML_PROFILER_INVALID);
    CHECK(records == NULL);
    CHECK(ggml_backend_sched_print_profiling(sched) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_reset_profiling(sched) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_export_profiling_json(sched, "never") == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_export_profiling_text(sched, "never") == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_write_profiling_json(sched, stdout) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_write_profiling_text(sched, stdout) == GGML_PROFILER_INVALID);
}

int main(int argc, char ** argv) {
    CHECK(argc == 3);
    ggml_backend_load_all_from_path(argv[1]);
    backend = ggml_backend_init_by_type(0, NULL);
    object registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    object set = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
    ((void (*)(object, int)) set)(backend, 1);

    ggml_backend_sched_t early = new_scheduler();
    ggml_backend_sched_free(early);
    CHECK(ggml_backend_sched_set_profiling(early, true) == GGML_PROFILER_INVALID);
    CHECK(ggml_backend_sched_set_profiling(NULL, true) == GGML_PROFILER_INVALID);
    check_unknown(NULL);

    ggml_backend_sched_t sched = new_scheduler();
    compute(sched, 2);
    check_unknown(sched);
    CHECK(ggml_backend_sched_set_profiling(sched, true) == GGML_PROFILER_OK);
    CHECK(ggml_backend_sched_get_profiling(sched));
    CHECK(count(sched) == 0);
    compute(sched, 3);
    check_records(sched);
    check_outputs(sched, argv[2]);
    check_errors(sched, argv[2]);

    // Another scheduler has records of its own.
    ggml_backend_sched_t other = new_scheduler();
    CHECK(ggml_backend_sched_set_profiling(other, true) == GGML_PROFILER_OK);
    compute(other, 2);
    CHECK(count(other) == 20 && count(sched) == 30);

    // They accumulate, also over pauses, until they are reset.
    compute(sched, 1);
    CHECK(ggml_backend_sched_set_profiling(sched, false) == GGML_PROFILER_OK);
    CHECK(!ggml_backend_sched_get_profiling(sched));
    compute(sched, 1);
    CHECK(count(sched) == 40);
    CHECK(ggml_backend_sched_set_profiling(sched, true) == GGML_PROFILER_OK);
    compute(sched, 1);
    CHECK(count(sched) == 50);
    CHECK(ggml_backend_sched_reset_profiling(sched) == GGML_PROFILER_OK);
    CHECK(count(sched) == 0 && ggml_backend_sched_get_profiling(sched));
    compute(sched, 1);
    CHECK(count(sched) == 10);

    // The next scheduler is likely to be where the last one was.
    ggml_backend_sched_free(sched);
    CHECK(ggml_backend_sched_set_profiling(sched, true) == GGML_PROFILER_INVALID);
    check_unknown(sched);
    ggml_backend_sched_t again = new_scheduler();
    compute(again, 1);
    CHECK(ggml_backend_sched_set_profiling(again, true) == GGML_PROFILER_OK);
    compute(again, 1);
    CHECK(count(again) == 10 && count(other) == 20);
    printf("all is well\n");
    return 0;
}
