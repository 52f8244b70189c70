// Stands in for the library of NVIDIA's driver, with two devices of known figures: the first takes
// 200 W and counts its energy, the second takes 90 W, does not count, and has no name to speak of.

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };

typedef struct { int number; } device;
static device devices[2] = {{0}, {1}};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int nvmlInit_v2(void) { return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
    *found = &devices[index];
    return SUCCESS;
}

// The first one's is STAND_IN_NAME, where that is set.
int nvmlDeviceGetName(device *of, char *name, unsigned bytes) {
    const char *told = getenv("STAND_IN_NAME");
    strncpy(name, of->number == 1 ? "" : told ? told : "Stand-in", bytes);
    return SUCCESS;
}

// Of the processors (1) it goes up and down, unless STAND_IN_MHZ says otherwise; of the memory (2) it
// stays.
int nvmlDeviceGetClockInfo(device *of, unsigned which, unsigned *megahertz) {
    static unsigned calls;
    if (of->number == 1) return NOT_SUPPORTED;
    const char *told = getenv("STAND_IN_MHZ");
    if (told && which != 2) {
        *megahertz = atoi(told);
        return SUCCESS;
    }
    *megahertz = which == 2 ? 2619 : calls++ % 2 == 0 ? 1980 : 1200;
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(device *of, unsigned which, unsigned *megahertz) {
    if (of->number == 1) return NOT_SUPPORTED;
    *megahertz = which == 2 ? 2619 : 1980;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(device *of, unsigned *milliwatts) {
    *milliwatts = of->number == 0 ? 200000 : 90000;
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(device *of, unsigned long long *millijoules) {
    if (of->number == 1) return NOT_SUPPORTED;
    *millijoules = seconds() * 200000;
    return SUCCESS;
}

// A struct of 40 bytes, the second of its kind; the second device's driver does not know it.
struct memory_2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(device *of, struct memory_2 *memory) {
    if (of->number == 1 || memory->version != 0x2000028) return NOT_SUPPORTED;
    *memory = (struct memory_2){memory->version, 8ull << 30, 1ull << 30, 1ull << 30, 6ull << 30};
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device *of, unsigned long long *total_free_used) {
    total_free_used[0] = 8ull << 30;
    total_free_used[1] = 1ull << 30;
    total_free_used[2] = 7ull << 30;
    return SUCCESS;
}
