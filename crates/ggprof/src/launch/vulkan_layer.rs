//! Announces the agent to Vulkan's loader, once for all programs that will be started: a manifest
//! beside the recordings, and variables that name it. What the user has set is kept, and ours
//! appended.

use ggprof_spool::layer;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The variables to set. None where the manifest cannot be written: then kernels of Vulkan
/// devices are not seen, and the report says so.
pub(crate) fn announce(agent: &Path, recordings: &Path) -> Vec<(&'static str, OsString)> {
    // As the agent knows it.
    let Ok(recordings) = recordings.canonicalize() else { return Vec::new() };
    let directory = recordings.join(layer::DIRECTORY);
    if write_manifest(agent, &directory).is_err() {
        return Vec::new();
    }
    // A path of the user's own makes the loader ignore the additional one.
    let own_path = std::env::var_os("VK_LAYER_PATH").is_some_and(|path| !path.is_empty());
    let path = if own_path { "VK_LAYER_PATH" } else { "VK_ADD_LAYER_PATH" };
    let mut variables = vec![
        (path, appended(path, directory.as_os_str().as_bytes())),
        ("VK_INSTANCE_LAYERS", appended("VK_INSTANCE_LAYERS", layer::NAME.as_bytes())),
    ];
    if std::env::var_os(layer::NAME_PIPELINES).is_none() {
        variables.push((layer::NAME_PIPELINES, layer::FOR_US.into()));
    }
    variables
}

fn write_manifest(agent: &Path, directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)?;
    let mut open = OpenOptions::new();
    open.write(true).create_new(true).mode(0o600);
    let mut file = open.open(directory.join(layer::MANIFEST))?;
    file.write_all(layer::manifest(&agent.to_string_lossy()).as_bytes())
}

fn appended(name: &str, part: &[u8]) -> OsString {
    let list = std::env::var_os(name).unwrap_or_default();
    layer::appended(list.as_bytes(), part).map_or(list, OsString::from_vec)
}
