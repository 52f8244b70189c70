//! Comparing real programs. `GGPROF_COMPARISONS=40` makes as many comparisons as docs/compare.md has
//! figures of; otherwise a few that say nothing about noise.

use std::path::Path;
use std::process::{Command, Output};

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rows(diff: &Value) -> &Vec<Value> {
    diff["contributions"].as_array().expect("rows")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// A program that computes longer for one shape, by so many parts of a thousand.
fn longer(libraries: &Path, graphs: u32, permille: u32) -> Vec<String> {
    let program = built::host_program("computes_longer.c");
    let words = [program.to_str().unwrap(), libraries.to_str().unwrap()];
    let numbers = [graphs.to_string(), permille.to_string()];
    words.into_iter().map(str::to_owned).chain(numbers).collect()
}

fn bench(options: &[&str], a: &[String], b: &[String]) -> Output {
    let mut command = Command::new(built::ggprof());
    command.arg("bench").args(options).args(["--format", "json", "--"]).args(a);
    command.args(["--vs", "--"]).args(b).output().unwrap()
}

/// What the comparison says of the shape that takes longer.
fn of_shape(diff: &Value) -> &Value {
    let is_meant = |row: &&Value| row["shape"].as_str().is_some_and(|it| it.contains("[300] f32"));
    rows(diff).iter().find(is_meant).expect("a row of the shape")
}

/// Two pairs are too few to call anything certain, but twice the time is the largest change of an op.
#[test]
fn a_shape_that_takes_twice_as_long() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = TempDir::new().unwrap();
    let (keep, baseline) = (directory.path().join("kept"), directory.path().join("baseline"));
    let places = ["--keep", keep.to_str().unwrap(), "--baseline", baseline.to_str().unwrap()];
    let options = ["--pairs", "2", "--max-pairs", "2", "--fail-if", "graphs > 1%"];
    let options = [&options[..], &places].concat();
    // So few cannot make the exit code of a change.
    let diff = json(&bench(&options, &longer(&libraries, 60, 0), &longer(&libraries, 60, 1000)));
    let ops = rows(&diff).iter().filter(|row| row["op"] == "MAP_CUSTOM1");
    let largest = ops.max_by(|a, b| number(a, "change_ns").total_cmp(&number(b, "change_ns")));
    assert_eq!(largest, Some(of_shape(&diff)), "{diff:#}");
    assert!(rows(&diff).iter().all(|row| row["noise"] != ""), "{diff:#}");
    let all: f64 = rows(&diff).iter().map(|row| number(row, "change_ns")).sum();
    assert!((all - number(&diff["phases"][0], "change_ns")).abs() < 1.0, "{all}");
    assert!(baseline.join("same-program.json").exists());

    // What was kept says the same, and one of it can be reported.
    let kept = |name: &str| keep.join(name);
    let mut again = Command::new(built::ggprof());
    again.arg("diff").args([kept("a1.ggprof"), kept("a2.ggprof")]).arg("--vs");
    again.args([kept("b1.ggprof"), kept("b2.ggprof")]).args(["--format", "json"]);
    let again = json(&again.output().unwrap());
    assert_eq!(number(of_shape(&again), "change_ns"), number(of_shape(&diff), "change_ns"));
    let mut issue = Command::new(built::ggprof());
    issue.args(["report", "--issue", "--since"]).args([kept("a1.ggprof"), kept("b1.ggprof")]);
    let issue = String::from_utf8(issue.output().unwrap().stdout).unwrap();
    assert!(issue.contains("`MAP_CUSTOM1(type=f32,ne=[300,1,1,1])`"), "{issue}");
    assert!(issue.lines().count() <= 60 && !issue.contains(directory.path().to_str().unwrap()));
}

#[test]
fn commands_that_fail_or_are_repeated() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let fails = bench(&[], &["false".to_owned()], &["true".to_owned()]);
    assert_eq!(fails.status.code(), Some(1), "{fails:?}");
    assert!(String::from_utf8_lossy(&fails.stderr).contains("false failed"), "{fails:?}");
    // Two runs to warm up, two pairs, and one that fails: what there is until then is compared.
    let directory = TempDir::new().unwrap();
    let line = format!(
        "echo >> runs; [ $(wc -l < runs) -lt 7 ] && exec {}",
        longer(&libraries, 5, 0).join(" ")
    );
    let mut bench = Command::new(built::ggprof());
    bench.args(["bench", "--format", "json", "--", "sh", "-c", &line]).current_dir(&directory);
    let some = bench.output().unwrap();
    assert_eq!(some.status.code(), Some(3), "{some:?}");
    assert!(String::from_utf8_lossy(&some.stderr).contains("pair 3 is left out"), "{some:?}");
    let diff: Value = serde_json::from_slice(&some.stdout).expect("JSON");
    assert_eq!((&diff["a"]["recordings"], &diff["b"]["recordings"]), (&2.into(), &2.into()));

    let nothing =
        Command::new(built::ggprof()).args(["run", "--repeat", "2", "--", "false"]).output();
    let nothing = nothing.unwrap();
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert!(!String::from_utf8_lossy(&nothing.stderr).contains("Time per token"), "{nothing:?}");

    let directory = TempDir::new().unwrap();
    let mut run = Command::new(built::ggprof());
    run.args(["run", "--repeat", "2", "-o"]).arg(directory.path().join("p.ggprof")).arg("--");
    let output = run.args(longer(&libraries, 5, 0)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("Time per token of 2 runs"), "{told}");
    for name in ["p.1.ggprof", "p.2.ggprof"] {
        assert!(directory.path().join(name).exists(), "{name}");
    }

    // A run is one run, whatever it consists of. Standard output takes one after the other.
    let [more, less] = [9, 5].map(|graphs| longer(&libraries, graphs, 0).join(" "));
    let mut run = Command::new(built::ggprof());
    run.args(["run", "--repeat", "2", "-o", "-", "--", "sh", "-c", &format!("{less}; {more}")]);
    let output = run.current_dir(&directory).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("Time per token of 2 runs"), "{told}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed.matches("\"records\"").count(), 4, "{printed}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 2);
}

/// What is kept of the bench before is not taken for what this one made.
#[test]
fn recordings_are_kept_and_replaced() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = TempDir::new().unwrap();
    let keep = ["--pairs", "1", "--max-pairs", "1", "--keep", directory.path().to_str().unwrap()];
    let alone = longer(&libraries, 50, 0);
    let graphs = |output: &Output| number(&json(output)["phases"][0], "units_a");
    assert_eq!(graphs(&bench(&keep, &alone, &alone)), 50.0);
    let several = ["sh", "-c"].map(str::to_owned).to_vec();
    let [less, more] = [5, 9].map(|graphs| longer(&libraries, graphs, 0).join(" "));
    let several = [several, vec![format!("{less}; {more}")]].concat();
    assert_eq!(graphs(&bench(&keep, &several, &several)), 9.0);
    // A longer bench has left more of them, and the user something else.
    for name in ["a9.ggprof", "b12.42.ggprof", "a9.txt"] {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    let last = bench(&keep, &alone, &alone);
    assert_eq!(graphs(&last), 50.0);
    let told = String::from_utf8_lossy(&last.stderr);
    assert!(told.contains("6 recordings of an earlier bench were removed"), "{told}");
    let names = directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["a1.ggprof", "a9.txt", "b1.ggprof"]);
}

/// Time that is over, and conditions that look at nothing, are known after the first pair.
#[test]
fn a_bench_that_ends_with_its_first_pair() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let alone = longer(&libraries, 5, 0);
    let late = json(&bench(&["--max-time", "1ms"], &alone, &alone));
    assert_eq!((&late["a"]["recordings"], &late["b"]["recordings"]), (&1.into(), &1.into()));
    let directory = TempDir::new().unwrap();
    let keep = ["--keep", directory.path().to_str().unwrap(), "--fail-if", "pp512 > 3%"];
    let deaf = bench(&keep, &alone, &alone);
    let told = String::from_utf8_lossy(&deaf.stderr);
    assert!(deaf.status.code() == Some(1) && told.contains("no such phase"), "{deaf:?}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 2);
}

/// What the program itself says a token took.
fn own_ns(output: &Output) -> f64 {
    let told = String::from_utf8_lossy(&output.stderr);
    let speed = told.lines().find_map(|line| line.trim().strip_prefix("tokens_per_second="));
    1e9 / speed.and_then(|text| text.parse::<f64>().ok()).expect("tokens per second")
}

/// Two published versions of llama.cpp that differ in fusion and attention. Parts of the model are
/// matched, and what they contribute is the change, by ggprof's clock and by the program's own.
#[test]
fn versions_that_fuse_and_attend_otherwise() {
    let model = Model::SMALL.file("small").unwrap();
    let directory = TempDir::new().unwrap();
    let record = |version: &str| {
        let generation =
            Generation { version, model: &model, tokens: 100, threads: 1, vulkan_layers: None };
        let command = generation.command().unwrap();
        let file = directory.path().join(format!("{version}.ggprof"));
        let mut run = Command::new(built::ggprof());
        run.args(["run", "-o"]).arg(&file).arg("--").arg(command.get_program());
        let output = run.args(command.get_args()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (file, own_ns(&output))
    };
    let [(a, own_a_ns), (b, own_b_ns)] = ["3.1.1", "3.22.1"].map(record);
    let mut diff = Command::new(built::ggprof());
    diff.arg("diff").args([a, b]).args(["--format", "json"]);
    let diff = json(&diff.output().unwrap());
    for phase in diff["phases"].as_array().unwrap() {
        let of_phase = rows(&diff).iter().filter(|row| row["phase"] == phase["phase"]);
        let of_phase: Vec<&Value> = of_phase.collect();
        let all: f64 = of_phase.iter().map(|row| number(row, "change_ns")).sum();
        let change = number(phase, "change_ns");
        assert!((all - change).abs() <= 0.05 * change.abs(), "{all} of {change}");
        let has = |op: &str, matched: &str| {
            let is_it = |row: &&&Value| {
                row["op"].as_str().is_some_and(|it| it.contains(op)) && row["matched"] == matched
            };
            of_phase.iter().any(|row| is_it(&row))
        };
        assert!(has("→ FLASH_ATTN_EXT", "same part of the model"), "{of_phase:#?}");
        assert!(has("RMS_NORM+MUL", ""), "{of_phase:#?}");
        assert!(has("MUL_MAT", ""), "{of_phase:#?}");
        if phase["phase"].as_str().is_some_and(|name| name.starts_with("tg")) {
            // The program counts from one result to another, and on a busy machine it loses its turn before
            // and behind the calls. docs/compare.md has how near they come otherwise.
            let apart = (all - (own_b_ns - own_a_ns)).abs();
            assert!(apart <= 0.2 * own_a_ns.max(own_b_ns), "{all}, not {own_a_ns} to {own_b_ns}");
        }
    }
    let differs = diff["differences"].as_array().unwrap();
    assert!(differs.iter().any(|it| it["what"] == "flash attention"), "{differs:#?}");
}

/// The figures of docs/compare.md: how often the same is called different, and how well a shape that
/// takes 5 % longer is found.
#[test]
fn alarms_and_discoveries() {
    let wanted = std::env::var("GGPROF_COMPARISONS").ok().and_then(|it| it.parse::<u32>().ok());
    let (Some(comparisons), Some(libraries)) =
        (wanted, published_ggml::libraries(published_ggml::NEWEST))
    else {
        return;
    };
    let same = longer(&libraries, 150, 0);
    let mut alarms = 0;
    for _ in 0..comparisons {
        let diff = json(&bench(&["--pairs", "5", "--max-pairs", "5"], &same, &same));
        let phases = diff["phases"].as_array().unwrap().iter();
        let is_alarm = |row: &&Value| row["noise"] == "" && !row["b_ns"].is_null();
        alarms += u32::from(phases.chain(rows(&diff)).any(|row| is_alarm(&row)));
    }
    println!("{alarms} alarms in {comparisons} comparisons of the same");
    let trials = comparisons / 4;
    let mut found = 0;
    for _ in 0..trials {
        let slower = longer(&libraries, 200, 50);
        let diff = json(&bench(&["--pairs", "6", "--max-pairs", "6"], &same, &slower));
        let row = of_shape(&diff);
        let of_truth = number(row, "change_ns") / (0.05 * number(row, "a_ns"));
        let is_first = rows(&diff).first() == Some(row);
        println!("first: {is_first}, {of_truth:.2} of what was added, noise {}", row["noise"]);
        found += u32::from(is_first && (of_truth - 1.0).abs() <= 0.2);
    }
    println!("{found} of {trials} found");
    assert!(alarms * 20 <= comparisons && found * 10 >= trials * 9);
}
