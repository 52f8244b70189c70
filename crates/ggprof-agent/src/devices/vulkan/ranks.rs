//! The ranks of Vulkan's locks (`lock`). ARCHITECTURE.md says what each protects.

crate::lock::device_ranks! {
    outer: DEVICE_CLOCK DEVICE_COVERAGE;
    inner: COMMAND_BUFFERS SPARE_BUFFERS IN_FLIGHT PIPELINES COMPILED SAMPLES LABELS QUERY_POOLS
        VULKAN_OBJECTS
}
