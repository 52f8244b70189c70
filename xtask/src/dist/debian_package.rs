//! A package for Debian and what descends from it.

use super::archive::{self, Entry};
use super::contents::{Contents, pkg_config};
use super::{Platform, VERSION};

pub(super) fn make(contents: &Contents, platform: &Platform) -> anyhow::Result<Vec<u8>> {
    let data = data(contents, platform)?;
    let kilobytes = data.iter().map(|entry| entry.bytes.len().div_ceil(1024)).sum::<usize>();
    let control = Entry::new("control", control(platform, kilobytes));
    Ok(archive::ar(&[
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::gzip(&archive::tar("./", &[control])?)?),
        ("data.tar.gz", archive::gzip(&archive::tar("./", &data)?)?),
    ]))
}

fn data(contents: &Contents, platform: &Platform) -> anyhow::Result<Vec<Entry>> {
    let libraries = format!("usr/lib/{}", platform.libraries);
    let pkg_config = pkg_config("/usr", &format!("lib/{}", platform.libraries));
    let mut entries = vec![
        Entry { is_program: true, ..Entry::new("usr/bin/ggprof", contents.command.clone()) },
        Entry::new(format!("{libraries}/libggml-profiler.so"), contents.library.clone()),
        Entry::new(format!("{libraries}/pkgconfig/ggml-profiler.pc"), pkg_config),
        Entry::new("usr/include/ggml-profiler.h", contents.header.clone()),
        Entry::new("usr/share/zsh/vendor-completions/_ggprof", contents.zsh.clone()),
        Entry::new("usr/share/doc/ggprof/copyright", copyright(contents)),
    ];
    for entry in contents.shared("usr/share") {
        entries.push(match entry.path.contains("/man/") {
            true => Entry::new(format!("{}.gz", entry.path), archive::gzip(&entry.bytes)?),
            false => entry,
        });
    }
    for (name, bytes) in contents.documents.iter().filter(|(name, _)| !name.starts_with("LICENSE"))
    {
        let path = format!("usr/share/doc/ggprof/{name}");
        entries.push(match name.ends_with(".md") {
            true => Entry::new(format!("{path}.gz"), archive::gzip(bytes)?),
            false => Entry::new(path, bytes.clone()),
        });
    }
    Ok(entries)
}

fn control(platform: &Platform, kilobytes: usize) -> String {
    format!(
        "Package: ggprof\n\
         Version: {VERSION}\n\
         Architecture: {}\n\
         Maintainer: ggprof developers <ggprof@localhost>\n\
         Installed-Size: {kilobytes}\n\
         Depends: libc6 (>= 2.17)\n\
         Section: devel\n\
         Priority: optional\n\
         Description: cross-backend profiler for ggml programs\n \
         Shows which tensor operations of llama.cpp, whisper.cpp, stable-diffusion.cpp\n \
         and other ggml programs take the time, on every backend, without changing or\n \
         rebuilding them.\n",
        platform.debian
    )
}

fn copyright(contents: &Contents) -> Vec<u8> {
    let licences = contents.documents.iter().filter(|(name, _)| name.starts_with("LICENSE"));
    let texts: Vec<&[u8]> = licences.map(|(_, bytes)| &bytes[..]).collect();
    let head = b"ggprof is licensed under either of the two licences below, at your option.\n\n";
    [&head[..], &texts.join(&b"\n"[..])].concat()
}
