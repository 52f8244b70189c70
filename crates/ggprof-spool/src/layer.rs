//! How the agent is announced to Vulkan's loader: by a manifest in a directory that the environment
//! names. `ggprof run` announces it for all programs that it starts; otherwise the agent announces
//! itself for its own process.

/// The name of the layer.
pub const NAME: &str = "VK_LAYER_GGPROF_timestamps";
/// Of the directory, beside the recordings, and of the manifest in it.
pub const DIRECTORY: &str = "vulkan-layer";
pub const MANIFEST: &str = "ggprof.json";
/// Makes ggml name its pipelines, whatever its value; our value shows that only ggprof set it.
pub const NAME_PIPELINES: &str = "GGML_VK_DEBUG_MARKERS";
pub const FOR_US: &str = "ggprof";

/// The manifest of the layer in this library.
pub fn manifest(library: &str) -> String {
    let library = library.replace('\\', "\\\\").replace('"', "\\\"");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{
  "file_format_version": "1.1.0",
  "layer": {{
    "name": "{NAME}",
    "type": "GLOBAL",
    "library_path": "{library}",
    "api_version": "1.3.0",
    "implementation_version": "1",
    "description": "ggprof {version}: device times of ggml",
    "functions": {{ "vkNegotiateLoaderLayerInterfaceVersion": "ggprof_vulkan_negotiate" }}
  }}
}}
"#
    )
}

/// The list with another part, once; `None` where it has it already.
pub fn appended(list: &[u8], part: &[u8]) -> Option<Vec<u8>> {
    if list.split(|&byte| byte == b':').any(|own| own == part) {
        return None;
    }
    let separator: &[u8] = if list.is_empty() { b"" } else { b":" };
    Some([list, separator, part].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_appended_to_once() {
        let list = |list: &str, part: &str| {
            appended(list.as_bytes(), part.as_bytes()).and_then(|it| String::from_utf8(it).ok())
        };
        assert_eq!(list("", "a").as_deref(), Some("a"));
        assert_eq!(list("x:y", "a").as_deref(), Some("x:y:a"));
        assert_eq!(list("x:a:y", "a"), None);
        assert_eq!(list("ab", "a").as_deref(), Some("ab:a"));
    }

    #[test]
    fn a_path_cannot_end_the_text_it_stands_in() {
        assert!(manifest("/a\"b\\c").contains(r#""library_path": "/a\"b\\c""#));
    }
}
