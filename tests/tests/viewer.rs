//! The viewer's page in a real browser: clicks, keys and the wheel, and names that try to be
//! more than names.

use ggprof_e2e::{browser, built, npm};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const HOSTILE: &str = "</script><img src=x onerror=\"window.hacked=1\"><script>alert(1)</script>";

#[test]
fn the_page_does_what_people_ask_of_it() {
    let Some(mut checks) = browser::script("run.mjs") else { return };
    let place = tempfile::tempdir().expect("a directory for the pages");
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/llama-1b-q4_0-h200.json.gz");
    let hostile = place.path().join(format!("{}.json", HOSTILE.replace('/', "")));
    std::fs::write(&hostile, hostile_recording()).expect("the recording can be written");
    let page = |name: &str, recording: &Path, options: &[&str]| -> PathBuf {
        let page = place.path().join(name);
        let mut command = Command::new(built::ggprof());
        command.arg("report").arg(recording).arg("--html-viewer").arg(&page).args(options);
        assert!(command.status().expect("ggprof runs").success());
        page
    };
    checks
        .arg(page("whole.html", &example, &[]))
        .arg(page("hostile.html", &hostile, &[]))
        .arg(page("limited.html", &example, &["--html-max-records", "100"]));
    let output = checks.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
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

/// A recording in which everything that has a name has a hostile one.
fn hostile_recording() -> String {
    let record = |at: u64| {
        json!({
            "type": 0, "name": HOSTILE, "backend_id": 0, "split_id": 0,
            "start_ns": at * 1000, "duration_ns": 400, "bytes": 16, "extra": HOSTILE,
            "tensor_name": HOSTILE, "ne": [4, 1, 1, 1], "out_type": 0, "n_src": 1,
            "ne_src": [[4, 1, 1, 1]], "type_src": [0], "sub_op": -1,
        })
    };
    let backend = json!({"id": 0, "name": HOSTILE, "device": HOSTILE, "device_type": 0});
    let records: Vec<_> = (0..5).map(record).collect();
    json!({"version": 3, "profiler": "ggml", "backends": [backend], "records": records}).to_string()
}
