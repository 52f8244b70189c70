//! A wheel: `pip install` puts the command where the environment's programs are. It is for every
//! Python 3.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::archive::{self, Entry};
use super::contents::Contents;
use super::{Platform, VERSION};

/// The wheel and its name.
pub(super) fn make(contents: &Contents, platform: &Platform) -> anyhow::Result<(Vec<u8>, String)> {
    let tag = format!("py3-none-{}", platform.wheel);
    let (data, about) = (format!("ggprof-{VERSION}.data"), format!("ggprof-{VERSION}.dist-info"));
    let command = Entry::new(format!("{data}/scripts/ggprof"), contents.command.clone());
    let mut entries = vec![Entry { is_program: true, ..command }];
    entries.extend(contents.shared(&format!("{data}/data/share")));
    let zsh = format!("{data}/data/share/zsh/site-functions/_ggprof");
    entries.push(Entry::new(zsh, contents.zsh.clone()));
    for (name, bytes) in contents.documents.iter().filter(|(name, _)| name.starts_with("LICENSE")) {
        entries.push(Entry::new(format!("{about}/licenses/{name}"), bytes.clone()));
    }
    entries.push(Entry::new(format!("{about}/METADATA"), metadata(contents)));
    entries.push(Entry::new(format!("{about}/WHEEL"), wheel(platform)));
    let record = record(&entries, &format!("{about}/RECORD"));
    entries.push(record);
    Ok((archive::zip(&entries)?, format!("ggprof-{VERSION}-{tag}.whl")))
}

fn metadata(contents: &Contents) -> Vec<u8> {
    let head = format!(
        "Metadata-Version: 2.1\n\
         Name: ggprof\n\
         Version: {VERSION}\n\
         Summary: Cross-backend profiler for ggml programs: llama.cpp, whisper.cpp, \
         stable-diffusion.cpp\n\
         License: MIT OR Apache-2.0\n\
         Requires-Python: >=3\n\
         Description-Content-Type: text/markdown\n\n"
    );
    let readme = contents.documents.iter().find(|(name, _)| name == "README.md");
    [head.as_bytes(), readme.map_or(&[], |(_, bytes)| bytes)].concat()
}

fn wheel(platform: &Platform) -> String {
    let tags = platform.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n"));
    let tags: String = tags.collect();
    format!("Wheel-Version: 1.0\nGenerator: ggprof xtask\nRoot-Is-Purelib: false\n{tags}")
}

/// The list of all files with their hashes, itself without.
fn record(entries: &[Entry], name: &str) -> Entry {
    let line = |entry: &Entry| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        format!("{},sha256={hash},{}\n", entry.path, entry.bytes.len())
    };
    let lines: String = entries.iter().map(line).collect();
    Entry::new(name, format!("{lines}{name},,\n"))
}
