//! How the agent is linked.

fn main() {
    // Slots, tables and function entries of others lead into the agent once they are changed, and
    // the Vulkan loader closes its layers with the last instance: so the agent must stay.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Pointers that the dynamic linker has set stay writable: to protect them takes a mapping more in every
    // process, and the addresses of the functions that hooks call must be writable anyway.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,norelro");
    println!("cargo:rerun-if-changed=build.rs");
}
