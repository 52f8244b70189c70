// CUDA's driver with one device, as far as `ggprof peaks` uses it. It checks what it is asked for, and
// ends the program where a real driver would crash or misbehave. It cannot compile kernels for sm_90a.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 64

static struct { char * at; size_t bytes; } memories[MOST];
static int entered;
static char context, device_module, device_function;

static void require(int is_so, const char * what) {
    if (!is_so) {
        fprintf(stderr, "fake driver: %s\n", what);
        abort();
    }
}

static int is_allocated(unsigned long long at, size_t bytes) {
    for (int i = 0; i < MOST; i++) {
        char * from = memories[i].at;
        if (from && (char *) at >= from && (char *) at + bytes <= from + memories[i].bytes) {
            return 1;
        }
    }
    return 0;
}

static char * allocate(size_t bytes) {
    for (int i = 0; i < MOST; i++) {
        if (!memories[i].at) {
            // Pages that nobody writes take no memory.
            memories[i].at = calloc(bytes, 1);
            memories[i].bytes = bytes;
            return memories[i].at;
        }
    }
    abort();
}

static void release(void * at) {
    for (int i = 0; i < MOST; i++) {
        if (memories[i].at == at) {
            free(at);
            memories[i].at = NULL;
            return;
        }
    }
    require(0, "freed twice");
}

static void work(void) {
    struct timespec some = {0, 100000};
    nanosleep(&some, NULL);
}

int cuInit(unsigned flags) { return flags; }
int cuGetErrorString(int error, const char ** text) { *text = error == 218 ? "a PTX JIT compilation failed" : NULL; return 0; }
int cuDeviceGetCount(int * count) { *count = 1; return 0; }
int cuDeviceGet(int * device, int at) { *device = at; return 0; }
int cuDeviceGetName(char * name, int bytes, int device) { (void) device; snprintf(name, bytes, "Fake GPU"); return 0; }
int cuDeviceGetAttribute(int * value, int which, int device) {
    (void) device;
    *value = which == 16 ? 2 : which == 75 ? 9 : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void ** made, int device) { (void) device; *made = &context; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void) device;
    for (int i = 0; i < MOST; i++) require(!memories[i].at, "memory is left");
    return 0;
}
int cuCtxSetCurrent(void * which) { entered = which == &context; return 0; }
int cuCtxSynchronize(void) { require(entered, "no context"); return 0; }
int cuMemGetInfo_v2(size_t * free, size_t * total) { *free = *total = 256u << 20; return 0; }
int cuMemAlloc_v2(unsigned long long * at, size_t bytes) { require(entered, "no context"); *at = (unsigned long long) allocate(bytes); return 0; }
int cuMemFree_v2(unsigned long long at) { release((void *) at); return 0; }
int cuMemsetD8_v2(unsigned long long at, unsigned char value, size_t bytes) { require(is_allocated(at, bytes), "fills what is not there"); (void) value; return 0; }
int cuMemHostAlloc(void ** at, size_t bytes, unsigned flags) { (void) flags; *at = allocate(bytes); return 0; }
int cuMemFreeHost(void * at) { release(at); return 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void * from, size_t bytes) { (void) from; require(is_allocated(to, bytes), "copies beyond the end"); work(); return 0; }
int cuMemcpyDtoH_v2(void * to, unsigned long long from, size_t bytes) { (void) to; require(is_allocated(from, bytes), "copies beyond the end"); work(); return 0; }
int cuModuleLoadData(void ** made, const void * text) {
    require(strstr(text, ".visible .entry run(") != NULL, "no kernel called run");
    *made = &device_module;
    return strstr(text, "sm_90a") ? 218 : 0;
}
int cuModuleUnload(void * module) { require(module == &device_module, "unknown module"); return 0; }
int cuModuleGetFunction(void ** found, void * module, const char * name) {
    require(module == &device_module && !strcmp(name, "run"), "unknown function");
    *found = &device_function;
    return 0;
}
int cuLaunchKernel(void * function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared, void * stream, void ** arguments, void ** extra) {
    (void) shared, (void) stream, (void) extra;
    require(function == &device_function && x > 0 && tx % 32 == 0 && y * z * ty * tz == 1, "a strange launch");
    unsigned long long at = *(unsigned long long *) arguments[0], number = *(unsigned long long *) arguments[1];
    require(is_allocated(at, 16) && number > 0, "strange arguments");
    work();
    return 0;
}
