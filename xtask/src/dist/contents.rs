//! What every package has in it, by what it is. Where it lies differs.

use anyhow::{Context, bail};
use std::fs;
use std::path::Path;

use super::VERSION;
use super::archive::{self, Entry};
use super::documents;
use crate::shell;

pub(crate) struct Contents {
    pub(super) command: Vec<u8>,
    pub(super) library: Vec<u8>,
    pub(super) header: Vec<u8>,
    /// By their names.
    pub(super) pages: Vec<(String, Vec<u8>)>,
    pub(super) bash: Vec<u8>,
    pub(super) zsh: Vec<u8>,
    pub(super) fish: Vec<u8>,
    /// Documents, by their names.
    pub(super) documents: Vec<(String, Vec<u8>)>,
}

impl Contents {
    pub(crate) fn gather(command: &Path, library: &Path) -> anyhow::Result<Self> {
        // A command for this machine: the one in the package may be for another.
        shell::cargo(&["build", "--quiet", "--package", "ggprof"])?;
        let root = shell::root();
        Ok(Self {
            command: read(command)?,
            library: read(library)?,
            header: read(&root.join("crates/ggml-profiler/include/ggml-profiler.h"))?,
            pages: pages(&shell::target().join("dist/man"))?,
            bash: generated(&["completions", "bash"])?,
            zsh: generated(&["completions", "zsh"])?,
            fish: generated(&["completions", "fish"])?,
            documents: documents::gather(&root)?,
        })
    }

    /// As an installation that can be unpacked anywhere.
    pub(super) fn tarball(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let mut entries = self.installation();
        let documents = self.documents.iter();
        entries.extend(documents.map(|(name, bytes)| Entry::new(name.clone(), bytes.clone())));
        archive::gzip(&archive::tar(&format!("{name}/"), &entries)?)
    }

    /// Where everything lies below a directory such as `/usr/local`.
    pub(crate) fn installation(&self) -> Vec<Entry> {
        let mut entries = vec![
            Entry { is_program: true, ..Entry::new("bin/ggprof", self.command.clone()) },
            Entry::new("lib/libggml-profiler.so", self.library.clone()),
            Entry::new("lib/pkgconfig/ggml-profiler.pc", pkg_config("${pcfiledir}/../..", "lib")),
            Entry::new("include/ggml-profiler.h", self.header.clone()),
            Entry::new("share/zsh/site-functions/_ggprof", self.zsh.clone()),
        ];
        entries.extend(self.shared("share"));
        entries
    }

    /// What has the same place below every `share`.
    pub(super) fn shared(&self, share: &str) -> Vec<Entry> {
        let page = |(name, bytes): &(String, Vec<u8>)| {
            Entry::new(format!("{share}/man/man1/{name}"), bytes.clone())
        };
        let mut entries: Vec<Entry> = self.pages.iter().map(page).collect();
        let bash = format!("{share}/bash-completion/completions/ggprof");
        entries.push(Entry::new(bash, self.bash.clone()));
        let fish = format!("{share}/fish/vendor_completions.d/ggprof.fish");
        entries.push(Entry::new(fish, self.fish.clone()));
        entries
    }
}

/// For compilers that look for the library by its name.
pub(super) fn pkg_config(prefix: &str, libraries: &str) -> String {
    format!(
        "prefix={prefix}\n\
         libdir=${{prefix}}/{libraries}\n\
         includedir=${{prefix}}/include\n\n\
         Name: ggml-profiler\n\
         Description: The C functions of ggml's profiler, for any ggml\n\
         Version: {VERSION}\n\
         Libs: -L${{libdir}} -lggml-profiler\n\
         Cflags: -I${{includedir}}\n"
    )
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn generated(words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let command = shell::target().join("debug/ggprof");
    let mut command = shell::command(&command.to_string_lossy(), &["generate"]);
    let output = command.args(words).output().context("cannot start ggprof")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`ggprof generate {}` failed: {said}", words.join(" "));
    }
    Ok(output.stdout)
}

fn pages(directory: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)?;
    generated(&["man", "--directory", &directory.to_string_lossy()])?;
    let mut pages = Vec::new();
    for page in fs::read_dir(directory)? {
        let page = page?;
        pages.push((page.file_name().to_string_lossy().into_owned(), read(&page.path())?));
    }
    pages.sort();
    Ok(pages)
}
