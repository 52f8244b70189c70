//! The libraries that an op is run on: those of the recorded program, or of directories.

use anyhow::anyhow;
use ggprof_ops::Libraries;
use ggprof_trace::{Backend, Trace};
use std::path::{Path, PathBuf};

/// What to call a ggml, and its libraries, or why it has none for this backend.
pub(super) type Choice = (String, Result<Libraries, String>);

pub(super) fn choices(
    trace: &Trace,
    backend: &Backend,
    directories: &[PathBuf],
) -> anyhow::Result<Vec<Choice>> {
    if directories.is_empty() {
        return Ok(vec![(String::new(), recorded(trace, backend))]);
    }
    let kind = kind_of(backend);
    let choice = |directory: &PathBuf| {
        let base = base_in(directory).ok_or_else(|| {
            let name = directory.display();
            anyhow!("{name} has no libggml-base. Name a directory with the libraries of a ggml.")
        })?;
        let backends = backends_in(directory, &kind, backend);
        let libraries = match backends.is_empty() {
            true => Err(format!("there is no libggml-{kind} in this directory")),
            false => Ok(Libraries { base, backends }),
        };
        Ok((directory.display().to_string(), libraries))
    };
    directories.iter().map(choice).collect()
}

/// Those of the recorded program, or why they cannot be used: a clause.
fn recorded(trace: &Trace, backend: &Backend) -> Result<Libraries, String> {
    const TRY: &str = "name a directory with the same libraries: --ggml DIR";
    let library = PathBuf::from(&backend.library_path);
    let ggml = trace.provenance.iter().flat_map(|facts| &facts.ggml).map(|ggml| &ggml.path);
    let bases: Vec<PathBuf> = ggml.filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let beside = bases.iter().find(|base| base.parent() == library.parent());
    let Some(base) = beside.or(bases.first()).filter(|_| !backend.library_path.is_empty()) else {
        return Err(format!(
            "the recording does not say where the libraries of its program are (those of ggprof do, from \
             format 6 on); {TRY}"
        ));
    };
    for path in [base, &library] {
        if !path.exists() {
            let path = path.display();
            return Err(format!("{path} is not there any more, or on another machine; {TRY}"));
        }
    }
    let is_library =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
    if !is_library(base) || !is_library(&library) {
        return Err(format!(
            "ggml is linked into {}, which cannot be loaded by another program; {TRY}",
            base.display()
        ));
    }
    Ok(Libraries { base: base.clone(), backends: vec![library] })
}

/// A library that was built anew where that of the recorded program was measures something else. `now` is
/// what it calls itself, version and commit; a sentence if that differs.
pub(super) fn replaced(trace: &Trace, base: &Path, now: &[String; 2]) -> Option<String> {
    let ggml = trace.provenance.iter().flat_map(|facts| &facts.ggml);
    let recorded = ggml.into_iter().find(|ggml| Path::new(&ggml.path) == base)?;
    let both = [&recorded.version, &recorded.commit].into_iter().zip(now);
    let differs =
        |(then, now): (&String, &String)| !then.is_empty() && !now.is_empty() && then != now;
    both.into_iter().any(differs).then(|| {
        format!(
            "{} is not the ggml that was recorded any more: then {} ({}), now {} ({}). What was measured \
             alone is of the new one.",
            base.display(),
            recorded.version,
            recorded.commit,
            now[0],
            now[1]
        )
    })
}

/// `cpu` of `libggml-cpu-zen4.so`, or of the device.
fn kind_of(backend: &Backend) -> String {
    let name = Path::new(&backend.library_path).file_name().map(|name| name.to_string_lossy());
    let of_library = name.as_deref().and_then(|name| name.strip_prefix("libggml-"));
    let word = of_library.unwrap_or(backend.label()).to_lowercase();
    word.chars().take_while(char::is_ascii_alphabetic).collect()
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_library(path: &Path, prefix: &str) -> bool {
    let name = file_name(path);
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.starts_with(['-', '.']) && rest.contains(".so")) && path.is_file()
}

fn base_in(directory: &Path) -> Option<PathBuf> {
    files_in(directory).into_iter().find(|path| is_library(path, "libggml-base"))
}

/// Backends are beside the base library, or in directories below `ggml`. The variant that the
/// recorded program used is taken if it is there.
fn backends_in(directory: &Path, kind: &str, backend: &Backend) -> Vec<PathBuf> {
    let below = files_in(&directory.join("ggml"));
    let files = files_in(directory).into_iter().chain(below.clone());
    let files = files.chain(below.iter().flat_map(|directory| files_in(directory)));
    let prefix = format!("libggml-{kind}");
    let found: Vec<PathBuf> = files.filter(|path| is_library(path, &prefix)).collect();
    let recorded = file_name(Path::new(&backend.library_path));
    match found.iter().find(|path| file_name(path) == recorded) {
        Some(same) => vec![same.clone()],
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Ggml, Provenance};

    fn recording(directory: &Path) -> Trace {
        let backends = [0, 1].map(Backend::unnamed).to_vec();
        let mut trace = Trace { backends, ..Trace::default() };
        let path = |name: &str| directory.join(name).display().to_string();
        for name in ["libggml-base.so", "libggml-cpu.so"] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        trace.backends[0].library_path = path("libggml-cpu.so");
        trace.backends[1].library_path = path("libggml-gone.so");
        let (version, commit) = ("1".to_owned(), "abc".to_owned());
        let ggml = Ggml { path: path("libggml-base.so"), version, commit, ..Ggml::default() };
        trace.provenance = Some(Provenance { ggml: vec![ggml], ..Provenance::default() });
        trace
    }

    #[test]
    fn a_library_that_is_gone_is_a_reason_of_its_ops() {
        let directory = tempfile::tempdir().unwrap();
        let trace = recording(directory.path());
        let found = |at: usize| choices(&trace, &trace.backends[at], &[]).unwrap().remove(0).1;
        assert!(found(0).is_ok());
        assert!(found(1).unwrap_err().contains("is not there any more"));
    }

    #[test]
    fn a_library_that_was_built_anew_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let trace = recording(directory.path());
        let base = directory.path().join("libggml-base.so");
        let replaced = |version: &str, commit: &str| {
            replaced(&trace, &base, &[version.to_owned(), commit.to_owned()]).is_some()
        };
        assert!(replaced("2", "abc") && replaced("1", "def"));
        assert!(!replaced("1", "abc") && !replaced("", ""));
    }
}
