//! Packs the viewer's sources, so that they take a quarter of their length in the command. Each has a
//! line in front, with its name and length.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let viewer = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../viewer");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", viewer.display());
    let mut names = Vec::new();
    gather(&viewer, Path::new(""), &mut names);
    names.sort();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for name in names {
        let text = fs::read(viewer.join(&name)).expect("the viewer can be read");
        writeln!(encoder, "{} {}", name.display(), text.len()).expect("memory can be written");
        encoder.write_all(&text).expect("memory can be written");
    }
    let packed = encoder.finish().expect("memory can be written");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo tells where to write"));
    fs::write(out.join("viewer"), packed).expect("OUT_DIR can be written");
}

/// Scripts and styles below a folder, but for tests.
fn gather(viewer: &Path, folder: &Path, names: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(viewer.join(folder)).expect("the viewer can be read") {
        let path = entry.expect("the viewer can be read").path();
        let name = folder.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() && !path.ends_with("test") {
            gather(viewer, &name, names);
        } else if path.extension().is_some_and(|end| end == "js" || end == "css") {
            names.push(name);
        }
    }
}
