// A library to preload: counts how often a program puts labels on its Vulkan commands. It stands
// in for the functions of VK_EXT_debug_utils, and passes each call on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int labels;

#define STAND_IN(name, result, arguments, given, counted) \
    static result (*real_##name) arguments;               \
    static result name arguments {                        \
        labels += counted;                                \
        return real_##name given;                         \
    }
STAND_IN(vkSetDebugUtilsObjectNameEXT, int, (void * device, const void * info), (device, info), 0)
STAND_IN(vkQueueBeginDebugUtilsLabelEXT, void, (void * queue, const void * label), (queue, label), 0)
STAND_IN(vkQueueEndDebugUtilsLabelEXT, void, (void * queue), (queue), 0)
STAND_IN(vkCmdBeginDebugUtilsLabelEXT, void, (void * buffer, const void * label), (buffer, label), 1)
STAND_IN(vkCmdEndDebugUtilsLabelEXT, void, (void * buffer), (buffer), 0)
STAND_IN(vkCmdInsertDebugUtilsLabelEXT, void, (void * buffer, const void * label), (buffer, label), 1)

void * vkGetInstanceProcAddr(void * instance, const char * asked) {
    void * loader = dlopen("libvulkan.so.1", RTLD_LAZY);
    void * (*next)(void *, const char *) = dlsym(loader, "vkGetInstanceProcAddr");
    void * found = next(instance, asked);
#define ANSWER(name)                          \
    if (found && strcmp(asked, #name) == 0) { \
        real_##name = found;                  \
        return name;                          \
    }
    ANSWER(vkSetDebugUtilsObjectNameEXT)
    ANSWER(vkQueueBeginDebugUtilsLabelEXT)
    ANSWER(vkQueueEndDebugUtilsLabelEXT)
    ANSWER(vkCmdBeginDebugUtilsLabelEXT)
    ANSWER(vkCmdEndDebugUtilsLabelEXT)
    ANSWER(vkCmdInsertDebugUtilsLabelEXT)
    return found;
}

__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "labels: %d\n", labels);
}
