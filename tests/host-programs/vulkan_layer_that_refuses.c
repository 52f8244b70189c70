// A Vulkan layer in front of the driver that makes devices only as a driver would that can
// neither reset queries from the host nor read two clocks at once. For one instance at a time.
#include "tiny_vulkan.h"

typedef void * (*Get)(Handle, const char *);

typedef struct Link {
    struct Link * next;
    Get of_instance, of_device;
} Link;

// What every struct of a chain begins with, and the loader's own goes on with.
typedef struct Part {
    int type;
    struct Part * next;
    int function;
    Link * link;
} Part;

enum { LOADER_INSTANCE = 47, LOADER_DEVICE = 48, HOST_QUERY_RESET = 1000261000 };

static Get next_of_instance, next_of_device;
static Handle instance_now;

static Link * advance(const void * info, int type) {
    Part * part = ((Part *) info)->next;
    while (part && (part->type != type || part->function != 0)) part = part->next;
    Link * link = part->link;
    part->link = link->next;
    return link;
}

static int layer_create_instance(const InstanceInfo * info, const void * allocator, Handle * instance) {
    next_of_instance = advance(info, LOADER_INSTANCE)->of_instance;
    int (*create)(const void *, const void *, Handle *) = next_of_instance(NULL, "vkCreateInstance");
    int result = create(info, allocator, instance);
    instance_now = *instance;
    return result;
}

static int layer_create_device(Handle physical, const DeviceInfo * info, const void * allocator, Handle * device) {
    int wants_reset = 0;
    for (const Part * part = info->next; part; part = part->next) wants_reset |= part->type == HOST_QUERY_RESET;
    Link * link = advance(info, LOADER_DEVICE);
    if (wants_reset || info->extension_count > 0) {
        fprintf(stderr, "refused\n");
        return wants_reset ? -8 : -7;
    }
    next_of_device = link->of_device;
    int (*create)(Handle, const void *, const void *, Handle *) =
        link->of_instance(instance_now, "vkCreateDevice");
    return create(physical, info, allocator, device);
}

static void * layer_of_device(Handle device, const char * name) {
    return next_of_device(device, name);
}

static void * layer_of_instance(Handle instance, const char * name) {
    if (strcmp(name, "vkCreateInstance") == 0) return layer_create_instance;
    if (strcmp(name, "vkCreateDevice") == 0) return layer_create_device;
    return instance ? next_of_instance(instance, name) : NULL;
}

struct Negotiation {
    int type;
    void * next;
    uint32_t version;
    void *of_instance, *of_device, *of_physical_device;
};

int vkNegotiateLoaderLayerInterfaceVersion(struct Negotiation * negotiation) {
    negotiation->version = 2;
    negotiation->of_instance = layer_of_instance;
    negotiation->of_device = layer_of_device;
    negotiation->of_physical_device = NULL;
    return 0;
}
