//! What a machine can do: measured, kept, and found again. The CUDA device is a library that only
//! pretends; its figures mean nothing, but all that is asked of it is checked.

use crate::place::Place;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A recording that was made on the machine of the test.
fn recording(cpu: &str) -> String {
    let file = r#"{"version": 3, "profiler": "ggml", "backends": [
        {"id": 0, "name": "CPU", "device": "CPU", "device_type": 0},
        {"id": 1, "name": "CUDA0", "device": "CUDA0", "description": "Fake GPU", "device_type": 1}],
      "records": [
        {"type": 0, "name": "ADD", "backend_id": 0, "split_id": 0, "start_ns": 0,
         "duration_ns": 100, "bytes": 4000, "extra": null, "ne": [1000, 1, 1, 1], "out_type": "f32",
         "src": [{"ne": [1000, 1, 1, 1], "type": "f32"}]}],
      "ggprof": {"version": 1, "provenance": {"command": "a", "pid": 1, "cpu": "CPU_NAME",
        "recorded_at_unix_ns": 0, "clock_error_ns": null, "cut_short": false,
        "unfinished_runs": 0}}}"#;
    file.replace("CPU_NAME", cpu)
}

fn fake_driver(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fake_driver.c");
    let library = folder.join("libcuda.so.1");
    let mut compile = Command::new("gcc");
    compile.args(["-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o"]).arg(library).arg(source);
    assert!(compile.status().expect("a C compiler is installed").success());
}

#[test]
fn a_machine_is_measured_once_and_its_recordings_are_held_against_it() {
    let place = Place::new();
    fake_driver(place.dir.path());
    let mut measure = place.command(&["peaks"]);
    measure.env("LD_LIBRARY_PATH", place.dir.path());
    // No Vulkan device: the tests of recording have one.
    measure.env("VK_ICD_FILENAMES", "/nowhere").env("VK_DRIVER_FILES", "/nowhere");
    let output = measure.output().expect("ggprof runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("CUDA0   Fake GPU"), "{said}");
    assert!(said.contains("multiplying by wgmma: compiling a kernel failed: a PTX JIT"), "{said}");
    let kept: Vec<_> = fs::read_dir(place.path("ggprof/peaks")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    let peaks: serde_json::Value =
        serde_json::from_slice(&fs::read(kept[0].path()).unwrap()).unwrap();
    let device = &peaks["devices"][0];
    assert!(device["read_bytes_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(device["copies"].as_array().unwrap().len(), 4);
    let by = |rate: &serde_json::Value| rate["by"].as_str().unwrap().to_owned();
    let compute: Vec<String> = device["compute"].as_array().unwrap().iter().map(by).collect();
    assert_eq!(compute, ["fma", "dp4a", "mma", "mma"]);

    let cpu = peaks["cpu"]["name"].as_str().unwrap();
    place.file("here.json", recording(cpu));
    place.file("elsewhere.json", recording("Another CPU"));
    let here = place.run(&["report", "here.json", "--by", "op"]);
    assert!(here.out.contains("of peak"), "{}", here.out);
    let elsewhere = place.run(&["report", "elsewhere.json", "--by", "op"]);
    assert!(elsewhere.out.contains("of best seen"), "{}", elsewhere.out);
    let file = kept[0].path();
    let named =
        place.run(&["report", "elsewhere.json", "--by", "op", "--peaks", file.to_str().unwrap()]);
    assert!(named.out.contains("of peak"), "{}", named.out);
    let wrong = place.run(&["report", "here.json", "--peaks", "here.json"]);
    assert!(wrong.err.contains("does not say what a machine can do"), "{}", wrong.err);
}
