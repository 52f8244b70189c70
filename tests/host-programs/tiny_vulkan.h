// As much of Vulkan as the programs here use, so that no headers need to be installed. The
// loader is opened, as ggml's newer versions do it; a program that hangs is ended.
#pragma once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void * Handle;
typedef uint64_t Object;

typedef struct {
    int type;
    const void * next;
    const char * application;
    uint32_t application_version;
    const char * engine;
    uint32_t engine_version;
    uint32_t api_version;
} ApplicationInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    const ApplicationInfo * application;
    uint32_t layer_count;
    const char * const * layers;
    uint32_t extension_count;
    const char * const * extensions;
} InstanceInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    uint32_t family;
    uint32_t count;
    const float * priorities;
} QueueInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    uint32_t queue_count;
    const QueueInfo * queues;
    uint32_t layer_count;
    const char * const * layers;
    uint32_t extension_count;
    const char * const * extensions;
    const void * features;
} DeviceInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    uint64_t size;
    uint32_t usage;
    uint32_t sharing;
    uint32_t family_count;
    const uint32_t * families;
} BufferInfo;

typedef struct {
    int type;
    const void * next;
    uint64_t size;
    uint32_t memory_type;
} MemoryInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    uint32_t family;
} PoolInfo;

typedef struct {
    int type;
    const void * next;
    Object pool;
    int level;
    uint32_t count;
} CommandBuffersInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
    const void * inheritance;
} BeginInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t wait_count;
    const Object * waits;
    const uint32_t * stages;
    uint32_t buffer_count;
    const Handle * buffers;
    uint32_t signal_count;
    const Object * signals;
} SubmitInfo;

typedef struct {
    int type;
    const void * next;
    uint32_t flags;
} FenceInfo;

typedef struct {
    uint64_t size, alignment;
    uint32_t types;
} Requirements;

// A function of the loader, or of a device, as `f(…)` of the type that is given.
static inline void * loader(void) {
    static void * handle;
    if (!handle) handle = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
    return handle;
}

#define VK(result, name, ...) ((result (*)(__VA_ARGS__)) dlsym(loader(), #name))
#define OF_DEVICE(device, result, name, ...) \
    ((result (*)(__VA_ARGS__)) VK(void *, vkGetDeviceProcAddr, Handle, const char *)(device, #name))

static inline int create_instance(const char * application, Handle * instance) {
    ApplicationInfo own = { 0, NULL, application, 1, NULL, 0, 1 << 22 | 2 << 12 };
    InstanceInfo info = { 1, NULL, 0, application ? &own : NULL, 0, NULL, 0, NULL };
    return VK(int, vkCreateInstance, const void *, const void *, Handle *)(&info, NULL, instance);
}

static inline void destroy_instance(Handle instance) {
    VK(void, vkDestroyInstance, Handle, const void *)(instance, NULL);
}

static inline Handle first_physical(Handle instance) {
    uint32_t count = 1;
    Handle physical = NULL;
    VK(int, vkEnumeratePhysicalDevices, Handle, uint32_t *, Handle *)(instance, &count, &physical);
    return physical;
}

// With features and an extension of the caller's, if there are any.
static inline int create_device(Handle physical, const void * features, const char * extension, Handle * device) {
    const float priority = 1;
    QueueInfo queue = { 2, NULL, 0, 0, 1, &priority };
    DeviceInfo info = { 3, features, 0, 1, &queue, 0, NULL, extension != NULL, &extension, NULL };
    return VK(int, vkCreateDevice, Handle, const void *, const void *, Handle *)(physical, &info, NULL, device);
}

static inline void destroy_device(Handle device) {
    VK(void, vkDestroyDevice, Handle, const void *)(device, NULL);
}

// Lets the device fill some memory, and returns what it wrote there.
static inline uint32_t fill(Handle device, uint32_t value) {
    Handle queue, commands;
    Object buffer, memory, pool, fence;
    uint32_t * mapped, found;
    OF_DEVICE(device, void, vkGetDeviceQueue, Handle, uint32_t, uint32_t, Handle *)(device, 0, 0, &queue);

    BufferInfo buffer_info = { 12, NULL, 0, 4096, 2, 0, 0, NULL };
    OF_DEVICE(device, int, vkCreateBuffer, Handle, void *, void *, Object *)(device, &buffer_info, NULL, &buffer);
    Requirements needs;
    OF_DEVICE(device, void, vkGetBufferMemoryRequirements, Handle, Object, void *)(device, buffer, &needs);
    MemoryInfo memory_info = { 5, NULL, needs.size, (uint32_t) __builtin_ctz(needs.types) };
    OF_DEVICE(device, int, vkAllocateMemory, Handle, void *, void *, Object *)(device, &memory_info, NULL, &memory);
    OF_DEVICE(device, int, vkBindBufferMemory, Handle, Object, Object, uint64_t)(device, buffer, memory, 0);

    PoolInfo pool_info = { 39, NULL, 0, 0 };
    OF_DEVICE(device, int, vkCreateCommandPool, Handle, void *, void *, Object *)(device, &pool_info, NULL, &pool);
    CommandBuffersInfo commands_info = { 40, NULL, pool, 0, 1 };
    OF_DEVICE(device, int, vkAllocateCommandBuffers, Handle, void *, Handle *)(device, &commands_info, &commands);
    BeginInfo begin_info = { 42, NULL, 1, NULL };
    OF_DEVICE(device, int, vkBeginCommandBuffer, Handle, void *)(commands, &begin_info);
    OF_DEVICE(device, void, vkCmdFillBuffer, Handle, Object, uint64_t, uint64_t, uint32_t)
    (commands, buffer, 0, 4096, value);
    OF_DEVICE(device, int, vkEndCommandBuffer, Handle)(commands);

    FenceInfo fence_info = { 8, NULL, 0 };
    OF_DEVICE(device, int, vkCreateFence, Handle, void *, void *, Object *)(device, &fence_info, NULL, &fence);
    SubmitInfo submit_info = { 4, NULL, 0, NULL, NULL, 1, &commands, 0, NULL };
    OF_DEVICE(device, int, vkQueueSubmit, Handle, uint32_t, void *, Object)(queue, 1, &submit_info, fence);
    OF_DEVICE(device, int, vkWaitForFences, Handle, uint32_t, Object *, uint32_t, uint64_t)
    (device, 1, &fence, 1, ~0ull);
    OF_DEVICE(device, int, vkMapMemory, Handle, Object, uint64_t, uint64_t, uint32_t, void *)
    (device, memory, 0, 4096, 0, &mapped);
    found = mapped[17];

    OF_DEVICE(device, void, vkDestroyFence, Handle, Object, void *)(device, fence, NULL);
    OF_DEVICE(device, void, vkDestroyCommandPool, Handle, Object, void *)(device, pool, NULL);
    OF_DEVICE(device, void, vkDestroyBuffer, Handle, Object, void *)(device, buffer, NULL);
    OF_DEVICE(device, void, vkFreeMemory, Handle, Object, void *)(device, memory, NULL);
    return found;
}
