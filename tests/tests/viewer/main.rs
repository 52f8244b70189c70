//! The viewer's page in a real browser: clicks, keys and the wheel, and names that try to be
//! more than names.

mod recordings;
mod totals;

use ggprof_e2e::{browser, built, npm};
use std::path::{Path, PathBuf};
use std::process::Command;

const HOSTILE: &str = "</script><img src=x onerror=\"window.hacked=1\"><script>alert(1)</script>";

/// A real recording.
fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/ggml-profiler-h200.json.gz")
}

/// A real recording of a CPU and a GPU.
fn both_sides() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/llama-moe-cpu-h200.ggprof.gz")
}

/// A recording that was made up.
fn made(place: &Path, name: &str, recording: String) -> PathBuf {
    let file = place.join(format!("{name}.json"));
    std::fs::write(&file, recording).expect("the recording can be written");
    file
}

/// The page of a recording.
fn page(place: &Path, name: &str, recording: &Path, options: &[&str]) -> PathBuf {
    let page = place.join(name);
    let mut command = Command::new(built::ggprof());
    command.arg("report").arg(recording).arg("--html-viewer").arg(&page).args(options);
    command.status().expect("ggprof runs");
    assert!(page.exists(), "{name} was not written");
    page
}

#[test]
fn the_page_does_what_people_ask_of_it() {
    let Some(mut checks) = browser::script("run.mjs") else { return };
    let place = tempfile::tempdir().expect("a directory for the pages");
    let made = |name: &str, recording: String| made(place.path(), name, recording);
    let whole = recordings::everything();
    let everything = made("everything", whole.clone());
    let damaged = made("damaged", whole[..whole.len() / 2].to_owned());
    let hostile = made(&HOSTILE.replace('/', ""), recordings::named(HOSTILE));
    let gapped = made("gapped", recordings::gapped());
    let page = |name: &str, recording: &Path, options: &[&str]| {
        page(place.path(), name, recording, options)
    };
    checks
        .arg(page("whole.html", &example(), &[]))
        .arg(page("sides.html", &both_sides(), &[]))
        .arg(page("everything.html", &everything, &[]))
        .arg(page("hostile.html", &hostile, &[]))
        .arg(page("limited.html", &example(), &["--html-max-records", "100"]))
        .arg(page("damaged.html", &damaged, &[]))
        .arg(page("gapped.html", &gapped, &[]));
    let output = checks.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
}

/// Several recordings on one page; open bands, and closed ones where there are many.
#[test]
fn each_process_has_a_band() {
    let Some(mut checks) = browser::script("bands.mjs") else { return };
    let place = tempfile::tempdir().expect("a directory for the pages");
    let files: Vec<PathBuf> = (1..=5)
        .map(|pid| {
            // The fifth is of another machine.
            let (cpu, started_s) =
                if pid < 5 { ("A", 1_790_000_000) } else { ("B", 1_790_000_007) };
            let recording = recordings::of_process(pid, cpu, started_s);
            made(place.path(), &format!("worker-{pid}"), recording)
        })
        .collect();
    for (name, files) in [("few.html", &files[..2]), ("many.html", &files[..])] {
        let page = place.path().join(name);
        let mut report = Command::new(built::ggprof());
        report.arg("report").args(files).arg("--html-viewer").arg(&page);
        let output = report.output().expect("ggprof runs");
        assert!(page.exists(), "{output:?}");
        checks.arg(page);
    }
    let output = checks.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The same with twice as much time from the start of each op to that of the next.
fn twice_as_slow(recording: &Path) -> String {
    let json = Command::new(built::ggprof()).args(["convert", "-o", "-"]).arg(recording).output();
    let mut profile: serde_json::Value =
        serde_json::from_slice(&json.expect("ggprof runs").stdout).expect("JSON");
    for record in profile["records"].as_array_mut().expect("records") {
        record["start_ns"] = (record["start_ns"].as_u64().expect("a time") * 2).into();
    }
    profile.to_string()
}

#[test]
fn two_recordings_on_one_page_are_linked() {
    let Some(mut checks) = browser::script("pair.mjs") else { return };
    let place = tempfile::tempdir().expect("a directory for the page");
    let (page, slower) = (place.path().join("pair.html"), place.path().join("slower.json"));
    std::fs::write(&slower, twice_as_slow(&example())).expect("a recording");
    let mut diff = Command::new(built::ggprof());
    diff.arg("diff").args([example(), slower]).arg("--html").arg(&page);
    let output = diff.output().expect("ggprof runs");
    assert!(output.status.success(), "{output:?}");
    let output = checks.arg(page).output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_page_has_the_units_of_the_reports() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer/test");
    let mut check = Command::new("node");
    check.arg(scripts.join("units.mjs")).arg(scripts.join("units.tsv"));
    let output = check.output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_types_of_the_scripts_agree() {
    let typescript = match npm::installed("typescript", &["typescript@5.9.2"]) {
        Ok(directory) => directory,
        Err(problem) => {
            let required = std::env::var_os("GGPROF_REQUIRE_BROWSER").is_some();
            assert!(!required, "typescript cannot be installed: {problem}");
            eprintln!("skipped, because typescript cannot be installed: {problem}");
            return;
        }
    };
    let viewer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer");
    let mut check = Command::new("node");
    check.arg(typescript.join("node_modules/typescript/bin/tsc")).arg("--project").arg(viewer);
    let output = check.output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
