//! How the agent is linked.

fn main() {
    // Slots, tables and function entries of others lead into the agent once they are changed, and
    // the Vulkan loader closes its layers with the last instance: so the agent must stay.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
