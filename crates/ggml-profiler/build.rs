//! How the library is linked.

fn main() {
    // ggml calls functions of ours once its tables are changed, so the library must stay.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libggml-profiler.so");
    println!("cargo:rerun-if-changed=build.rs");
}
