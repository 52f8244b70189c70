//! Clocks, power and energy that the launcher reads while a program runs: on a stand-in for the
//! library of NVIDIA's driver, whose figures are known.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggprof_e2e::controlled::Session;
use ggprof_e2e::model::Model;
use ggprof_e2e::{built, debian_sid};
use serde_json::Value;
use tempfile::TempDir;

/// A directory with the stand-in, for the loader to look in.
fn driver(place: &Path) -> PathBuf {
    let library = built::host_library("nvml_stand_in.c");
    std::fs::copy(library, place.join("libnvidia-ml.so.1")).expect("it can be placed");
    place.to_owned()
}

/// A prompt and a generation of a second or so each.
fn bench(tokens: [&str; 2]) -> Option<Command> {
    let model = Model::TINY.file("tiny").expect("the model can be written");
    let mut bench = debian_sid::command("llama-bench", &["cpu"])?;
    bench.arg("-m").arg(model).args(["-r", "1", "-t", "1", "--no-warmup"]);
    bench.args(["-p", tokens[0], "-n", tokens[1]]);
    Some(bench)
}

fn report(file: &Path) -> Value {
    let mut command = Command::new(built::ggprof());
    command.arg("report").arg(file).args(["--format", "json"]);
    let output = command.output().expect("ggprof runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rows<'r>(report: &'r Value, table: &str, device: &str) -> Vec<&'r Value> {
    let rows = report[table].as_array().unwrap_or_else(|| panic!("{table} in {report}"));
    rows.iter().filter(|row| row["device"].as_str() == Some(device)).collect()
}

#[track_caller]
fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found} for {expected}"));
    assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
}

/// What a device's sensor said, again and again.
fn values_of(file: &Path, quantity: &str, device: u64) -> Vec<u64> {
    let json = file.with_extension("json");
    let mut convert = Command::new(built::ggprof());
    convert.arg("convert").arg(file).arg("-o").arg(&json);
    assert!(convert.status().expect("ggprof runs").success());
    let whole: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).expect("JSON");
    let sensors = whole["ggprof"]["sensors"].as_array().expect("a list").iter();
    let mut found = sensors.filter(|one| one["quantity"] == quantity && one["device"] == device);
    let values = found.next().expect("the sensor")["values"].as_array().expect("values").iter();
    values.map(|value| value.as_u64().expect("a number")).collect()
}

#[test]
fn energy_is_power_times_time_whichever_of_them_the_device_tells() {
    let place = TempDir::new().expect("a directory");
    let Some(bench) = bench(["4096", "3000"]) else { return };
    let file = place.path().join("p.ggprof");
    let mut run = Command::new(built::ggprof());
    run.env("LD_LIBRARY_PATH", driver(place.path())).arg("run").arg("-o").arg(&file).arg("--");
    // Apart from what other tests record.
    run.env("XDG_RUNTIME_DIR", place.path());
    let output = run.arg(bench.get_program()).args(bench.get_args()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    // Without the driver: the recording has it all.
    for (device, used) in [(0, 6 << 30), (1, 7 << 30)] {
        let values = values_of(&file, "DeviceMemory", device);
        assert!(values.iter().all(|&value| value == used), "{device}: {values:?}");
    }
    let report = report(&file);
    let seconds = report["time"]["wall_ns"].as_f64().expect("a time") / 1e9;
    for (device, watts, from) in
        [("GPU 0 Stand-in", 200.0, "its counter"), ("GPU 1", 90.0, "power over time")]
    {
        let row = rows(&report, "energy", device)[0];
        assert_eq!(row["from"], from);
        near(&row["watts"], watts);
        near(&row["joules"], watts * seconds);
        let phases = rows(&report, "energy_by_phase", device);
        let names: Vec<_> = phases.iter().map(|row| row["phase"].as_str().unwrap()).collect();
        assert_eq!(names, ["prompt", "generation"]);
        for phase in phases {
            let (wall, tokens) = (phase["wall_ns"].as_f64().unwrap(), phase["tokens"].as_f64());
            if phase["joules"].is_null() {
                assert!(wall < 0.3e9, "there are readings enough: {phase}");
                continue;
            }
            near(&phase["joules"], watts * wall / 1e9);
            near(&phase["joules_per_token"], watts * wall / 1e9 / tokens.unwrap());
        }
    }
    let clocks = ["clock_min_hz", "clock_max_hz"];
    let first = rows(&report, "energy", "GPU 0 Stand-in")[0];
    assert_eq!(clocks.map(|key| first[key].as_f64()), [Some(1.2e9), Some(1.98e9)]);
    let second = rows(&report, "energy", "GPU 1")[0];
    assert!(clocks.iter().all(|key| second[*key].is_null()), "it does not tell its clock");
}

/// What those see who watch it.
fn check_live(session: &Session) {
    let pid = &session.wait_for(1)[0].to_string();
    let top = ["top", pid, "--json", "--count", "1"];
    let output = session.ggprof(&top).output().expect("it runs");
    let frame: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let readings = frame["sensors"].as_array().expect("readings").iter();
    let power = readings.filter(|reading| reading["quantity"] == "device_power");
    let power: Vec<_> = power.map(|it| (it["device"].as_u64(), it["value"].as_f64())).collect();
    assert!(power.contains(&(Some(1), Some(90.0))), "{frame}");
    let metrics = session.ctl_well(&["metrics", pid]);
    assert!(metrics.contains("\nggprof_device_power_watts{device=\"1\"} 90\n"), "{metrics}");
    assert!(metrics.contains("# TYPE ggprof_device_energy_joules counter"), "{metrics}");
}

#[test]
fn a_copy_made_meanwhile_has_what_was_read_until_then() {
    let place = TempDir::new().expect("a directory");
    let session = Session::new(&place.path().join("session"));
    let Some(bench) = bench(["0", "20000"]) else { return };
    let mut run = session.recorded(&["--max-size", "20MB"], &bench);
    run.env("LD_LIBRARY_PATH", driver(place.path())).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = run.spawn().expect("it starts");
    let copied = session.file("copy.ggprof");
    // Until the model is loaded, and some readings were made.
    let is_enough = |report: &Value| {
        let row = report["energy"].as_array().and_then(|rows| rows.first().cloned());
        row.is_some_and(|row| row["watts"].is_number())
    };
    let mut found = Value::Null;
    for _ in 0..100 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let output = session.ctl(&["snapshot", "-o", &copied.to_string_lossy()]);
        found = if output.status.success() { report(&copied) } else { Value::Null };
        if is_enough(&found) {
            break;
        }
    }
    check_live(&session);
    let _ = Command::new("kill").args(["-TERM", &running.id().to_string()]).status();
    let _ = running.wait();
    near(&rows(&found, "energy", "GPU 0 Stand-in")[0]["watts"], 200.0);
}

#[test]
fn sensors_can_be_left_alone() {
    let place = TempDir::new().expect("a directory");
    let Some(bench) = bench(["16", "0"]) else { return };
    let file = place.path().join("p.ggprof");
    let mut run = Command::new(built::ggprof());
    run.env("LD_LIBRARY_PATH", driver(place.path())).args(["run", "--no-sensors", "-o"]);
    run.arg(&file).arg("--").arg(bench.get_program()).args(bench.get_args());
    assert!(run.output().expect("it runs").status.success());
    assert_eq!(report(&file)["energy"], Value::Null);
}

#[test]
fn doctor_says_what_can_be_read() {
    let place = TempDir::new().expect("a directory");
    let mut doctor = Command::new(built::ggprof());
    doctor.env("LD_LIBRARY_PATH", driver(place.path())).arg("doctor");
    let output = doctor.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told =
        text.lines().find(|line| line.starts_with("sensors")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        told.contains("processors: ") && told.contains("GPU 0 Stand-in: clock, power"),
        "{told}"
    );
}
