//! llama.cpp's own library from the same crate, as far as a small model needs it.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::objects::Objects;
use crate::compiling::{self, Job};
use crate::source_ggml;

/// Of llama.cpp, the slowest to compile first. What writes files, chooses among tokens or
/// knows other models is left out.
const SOURCES: [&str; 31] = [
    "src/llama-model.cpp",
    "src/llama-model-loader.cpp",
    "src/unicode.cpp",
    "src/llama-context.cpp",
    "src/llama-graph.cpp",
    "src/llama-kv-cache.cpp",
    "src/llama-vocab.cpp",
    "src/llama-kv-cache-dsv4.cpp",
    "src/llama-batch.cpp",
    "ggml/src/gguf.cpp",
    "src/llama-memory-hybrid-idx.cpp",
    "src/unicode-data.cpp",
    "src/llama-adapter.cpp",
    "src/llama-moe-cache.cpp",
    "src/llama-memory-recurrent.cpp",
    "src/llama.cpp",
    "src/llama-memory-hybrid.cpp",
    "src/llama-memory-hybrid-iswa.cpp",
    "src/llama-kv-cache-iswa.cpp",
    "src/llama-kv-cache-dsa.cpp",
    "src/llama-kv-cache-dsa-iswa.cpp",
    "src/llama-kv-cache-msa.cpp",
    "src/llama-memory.cpp",
    "src/models/llama.cpp",
    "src/llama-arch.cpp",
    "src/llama-mmap.cpp",
    "src/llama-impl.cpp",
    "src/llama-hparams.cpp",
    "src/llama-io.cpp",
    "src/llama-cparams.cpp",
    "src/llama-chat.cpp",
];

/// Directories of its headers, beside ggml's.
pub(super) fn headers() -> Result<Vec<PathBuf>, String> {
    let llama = source_ggml::source_directory()?.with_file_name("");
    Ok(vec![llama.join("include"), llama.join("src"), directory()?])
}

/// Its objects, compiled once against the unchanged ggml.
pub(super) fn objects(ggml: &Objects) -> Result<Vec<PathBuf>, String> {
    let directory = directory()?;
    let version = "#define LLAMA_VERSION \"source\"\n#define LLAMA_COMMIT \"source\"\n";
    std::fs::write(directory.join("llama-version.h"), version).map_err(|e| e.to_string())?;
    let llama = source_ggml::source_directory()?.with_file_name("");
    let headers = headers()?;
    let object = |source: &str| directory.join(format!("{}.o", source.replace('/', "_")));
    let missing = SOURCES.iter().filter(|source| !object(source).is_file());
    let jobs = missing.map(|source| {
        let mut command = ggml.command(source);
        command
            .arg("-O0")
            .args(headers.iter().flat_map(|place| [OsStr::new("-I"), place.as_os_str()]));
        command.arg("-c").arg(llama.join(source));
        Job { command, result: object(source) }
    });
    compiling::run_all(jobs.collect())?;
    Ok(SOURCES.iter().map(|source| object(source)).collect())
}

fn directory() -> Result<PathBuf, String> {
    let directory = source_ggml::directory()?.join("llama");
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    Ok(directory)
}
