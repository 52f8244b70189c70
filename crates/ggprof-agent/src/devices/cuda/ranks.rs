//! The ranks of CUDA's locks (`lock`). ARCHITECTURE.md says what each protects.

crate::lock::device_ranks! {
    outer: CUDA CUDA_TIMEKEEPER CUDA_WORK;
    inner: CUDA_LIBRARIES CUPTI_BUFFERS
}
