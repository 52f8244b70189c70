//! Names of the types of memory.

/// Whether memory of the host is pinned for a device. Backends call theirs after themselves:
/// `CUDA_Host`, `Vulkan_Host`, `ROCm_Host`, `SYCL_Host`. All other memory of the host (`CPU`,
/// `CPU_Mapped`, `CPU_REPACK`) is pageable, unless the program pinned it without ggml.
pub fn is_pinned(type_name: &str) -> bool {
    type_name.ends_with("_Host")
}

#[cfg(test)]
mod tests {
    use super::is_pinned;

    #[test]
    fn names_of_pinned_memory() {
        assert!(is_pinned("CUDA_Host") && is_pinned("Vulkan_Host"));
        assert!(!is_pinned("CPU") && !is_pinned("CPU_Mapped") && !is_pinned("CUDA0"));
    }
}
