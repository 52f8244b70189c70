//! Checks the crates of others that the project is built from: their licences, where they come
//! from, and that none is used in two versions. `deny.toml` is the list.
//!
//! cargo-deny checks the same and more, but compiling it takes longer than all of lint (over three
//! minutes on two cores), and no registry has a build of it that understands this cargo. So this
//! file asks `cargo metadata`, and runs cargo-deny only if it is installed.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use crate::shell;

/// The file that says what is allowed.
const LIST: &str = "deny.toml";

/// What `deny.toml` allows.
struct Allowed {
    licences: Vec<String>,
    sources: Vec<String>,
    targets: Vec<String>,
}

/// A crate of the registry.
struct Dependency {
    name: String,
    version: String,
    licence: String,
    source: String,
}

/// A sentence for each dependency that the list does not allow.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let allowed = Allowed::parse(&text)?;
    Ok(complaints(&allowed, &dependencies(&allowed.targets)?))
}

/// Lets cargo-deny have a look too, where it is installed.
pub(super) fn ask_cargo_deny() -> anyhow::Result<()> {
    let mut version = shell::cargo_command(&["deny", "--version"]);
    let found = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found.is_ok_and(|status| status.success()) {
        true => shell::cargo(&["deny", "check", "licenses", "bans", "sources"]),
        false => Ok(()),
    }
}

impl Allowed {
    fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(Self {
            licences: list(text, "allow")?,
            sources: list(text, "allow-registry")?,
            targets: list(text, "targets")?,
        })
    }
}

/// The strings of `key = ["…", "…"]`. An array is all that is needed of TOML.
fn list(text: &str, key: &str) -> anyhow::Result<Vec<String>> {
    let beginning = format!("\n{key} = [");
    let strings = text
        .split_once(&beginning)
        .and_then(|(_, rest)| rest.split_once(']'))
        .with_context(|| format!("{LIST} has no list `{key}`"))?;
    Ok(strings.0.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// All crates that a build for these targets takes from elsewhere.
fn dependencies(targets: &[String]) -> anyhow::Result<Vec<Dependency>> {
    let mut metadata = shell::cargo_command(&["metadata", "--format-version", "1", "--locked"]);
    for target in targets {
        metadata.args(["--filter-platform", target]);
    }
    let output = metadata.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", output.status);
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let built = built(targets)?;
    // Crates of this workspace have no source.
    let others = packages.iter().filter(|package| package["source"].is_string()).map(dependency);
    Ok(others.filter(|it| built.contains(&format!("{} v{}", it.name, it.version))).collect())
}

/// The names and versions of crates that a build really needs: `cargo metadata` also lists what a
/// crate would need if an optional part of it were asked for.
fn built(targets: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let mut tree = shell::cargo_command(&["tree", "--workspace", "--locked", "--prefix", "none"]);
    tree.args(["--edges", "all", "--format", "{p}"]);
    for target in targets {
        tree.args(["--target", target]);
    }
    let output = tree.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo tree` failed: {}", output.status);
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(lines.lines().map(name_and_version).collect())
}

fn dependency(package: &Value) -> Dependency {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    Dependency {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        source: text("source"),
    }
}

fn complaints(allowed: &Allowed, dependencies: &[Dependency]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Dependency { name, version, licence, source } in dependencies {
        versions.entry(name).or_default().push(version);
        if !is_allowed(licence, &allowed.licences) {
            found.push(format!("{LIST}: {name} {version} is under `{licence}`, not allowed"));
        }
        let registry = source.strip_prefix("registry+");
        if !registry.is_some_and(|registry| allowed.sources.iter().any(|one| one == registry)) {
            found.push(format!("{LIST}: {name} {version} comes from {source}, not allowed"));
        }
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        found.push(format!(
            "{LIST}: {name} is there {} times: {}",
            versions.len(),
            versions.join(", ")
        ));
    }
    found
}

/// Whether we may use something under this SPDX expression. Crates from before such expressions
/// write `MIT/Apache-2.0`.
fn is_allowed(licence: &str, allowed: &[String]) -> bool {
    let is_listed = |term: &spdx::LicenseReq| allowed.contains(&term.to_string());
    spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX)
        .is_ok_and(|expression| expression.evaluate(is_listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
[graph]
targets = [\"one\"]
[licenses]
allow = [
    \"MIT\",
    \"Zlib\",
]
[sources]
allow-registry = [\"https://here\"]
";

    fn crates(facts: &[(&str, &str, &str, &str)]) -> Vec<String> {
        let dependencies: Vec<Dependency> = facts
            .iter()
            .map(|&(name, version, licence, source)| Dependency {
                name: name.to_owned(),
                version: version.to_owned(),
                licence: licence.to_owned(),
                source: source.to_owned(),
            })
            .collect();
        complaints(&Allowed::parse(TEXT).expect("it has the lists"), &dependencies)
    }

    #[test]
    fn the_project_keeps_to_its_list() {
        let findings = check(&shell::root()).expect("cargo knows the dependencies");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn licences_are_expressions() {
        let allowed = ["MIT".to_owned(), "Zlib".to_owned()];
        for licence in ["MIT", "GPL-3.0 OR MIT", "MIT AND Zlib", "MIT/Apache-2.0"] {
            assert!(is_allowed(licence, &allowed), "{licence}");
        }
        for licence in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH LLVM-exception", "nonsense"] {
            assert!(!is_allowed(licence, &allowed), "{licence}");
        }
    }

    #[test]
    fn what_the_list_does_not_allow_is_told() {
        let here = "registry+https://here";
        assert_eq!(crates(&[("a", "1.0.0", "MIT", here), ("b", "1.0.0", "Zlib", here)]), [""; 0]);
        assert_eq!(
            crates(&[
                ("a", "1.0.0", "GPL-3.0", here),
                ("b", "1.0.0", "MIT", "git+https://here"),
                ("c", "1.0.0", "MIT", here),
                ("c", "2.0.0", "MIT", here),
            ]),
            [
                "deny.toml: a 1.0.0 is under `GPL-3.0`, not allowed",
                "deny.toml: b 1.0.0 comes from git+https://here, not allowed",
                "deny.toml: c is there 2 times: 1.0.0, 2.0.0",
            ]
        );
    }

    #[test]
    fn a_list_without_a_part_is_no_list() {
        assert!(Allowed::parse("[licenses]\nallow = [\"MIT\"]\n").is_err());
    }
}
