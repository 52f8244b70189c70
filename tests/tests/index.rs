//! A catalogue of real recordings, whose speeds are those of their reports, and its page in a browser.

use std::path::Path;
use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{browser, built, published_ggml, tool};
use serde_json::Value;
use tempfile::TempDir;

const VERSIONS: [&str; 2] = [published_ggml::NEWEST, "3.14.5"];

/// Two recordings of each of two versions of llama.cpp. `None`, with a sentence, where they cannot be
/// had.
fn recordings() -> Option<TempDir> {
    let directory = TempDir::new().unwrap();
    let model = Model::TINY.file("tiny").expect("a model");
    for version in VERSIONS {
        published_ggml::libraries(version)?;
        let generation =
            Generation { version, model: &model, tokens: 8, threads: 2, vulkan_layers: None };
        for run in 0..2 {
            let command = generation.command().unwrap();
            let recorded = directory.path().join(format!("{version}-{run}.ggprof"));
            let mut ggprof = Command::new(built::ggprof());
            ggprof.args(["run", "-o"]).arg(&recorded).arg("--").arg(command.get_program());
            tool::output(ggprof.args(command.get_args())).unwrap();
        }
    }
    Some(directory)
}

fn ask(words: &[&str], path: &Path) -> Value {
    let mut ggprof = Command::new(built::ggprof());
    ggprof.args(&words[..1]).arg(path).args(&words[1..]).args(["--format", "json"]);
    serde_json::from_str(&tool::output(&mut ggprof).unwrap()).unwrap()
}

#[test]
fn speeds_are_those_of_the_reports() {
    let Some(directory) = recordings() else { return };
    let by_file = ask(&["index", "--by", "file"], directory.path());
    let rows = by_file["speeds"].as_array().unwrap();
    assert_eq!((rows.len(), &by_file["catalogue"]["read"]), (8, &4.into()), "{by_file:#}");
    for row in rows {
        let file = directory.path().join(row["file"].as_str().unwrap());
        let report = ask(&["report", "--by", "phase"], &file);
        let phases = report["phases"].as_array().unwrap();
        let phase = phases.iter().find(|phase| phase["phase"] == row["phase"]).expect("the phase");
        assert_eq!(phase["tokens_per_s"], row["tokens_per_s"]);
    }
    // The older build was recorded later, and so stands behind the newer one.
    let by_commit = ask(&["index", "--phase", "tg"], directory.path());
    let rows = by_commit["speeds"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{by_commit:#}");
    for row in rows {
        assert_eq!(row["recordings"], 2);
        assert!(row["model"].as_str().unwrap().contains("q4_0"), "{row:#}");
        assert!(row["commit"].as_str().unwrap().contains("libllama"), "{row:#}");
    }
    assert!(rows[1]["commit"].as_str().unwrap().contains("7e467cc"), "{rows:#?}");
    assert_eq!((&rows[1]["noise"], rows[1]["change"].is_f64()), (&"~".into(), true));
    assert_eq!(by_commit["catalogue"]["read"], Value::Null);
}

/// Three prompts of 8 tokens on a device, each taking so long.
fn made(directory: &Path, name: &str, (commit, device): (&str, &str), day: u64, us: u64) {
    let backends =
        serde_json::json!([{"id": 0, "name": device, "device": device, "device_type": 1}]);
    let end = us * 1000;
    let part = serde_json::json!({"sequence": 0, "positions": [0, 7], "tokens": 8, "outputs": 1});
    let record = serde_json::json!([{
        "type": 0, "name": "ADD", "backend_id": 0, "split_id": 0, "start_ns": 0,
        "duration_ns": end, "bytes": 64, "extra": null, "tensor_name": "x", "graph_run": 0,
    }]);
    let facts = serde_json::json!({
        "version": 1,
        "graph_runs": [[1, 0, end]],
        "graph_run_facts": [[1, 0]],
        "batches": [{
            "call": 1, "context": 1, "start_ns": 0, "end_ns": end, "function": "Decode",
            "tokens": 8, "outputs": 1, "sequences": [part],
        }],
        "provenance": {
            "command": "program", "pid": 1, "cpu": "", "clock_error_ns": null,
            "recorded_at_unix_ns": 1_790_000_000_000_000_000 + day * 86_400_000_000_000,
            "ggml": [{"library": "", "version": "1.0", "commit": commit}],
            "cut_short": false, "unfinished_runs": 0,
        },
    });
    let json = format!(
        r#"{{"version":3,"profiler":"ggml","backends":{backends},"records":{record},"ggprof":{facts}}}"#
    );
    std::fs::write(directory.join(format!("{name}.ggprof")), json).unwrap();
}

#[test]
fn the_page_of_a_history() {
    let Some(mut checks) = browser::script("history.mjs") else { return };
    let directory = TempDir::new().unwrap();
    let hostile = "</script><img src=x onerror=\"window.hacked=1\">";
    for run in 0..5 {
        for (commit, day, us) in [("aaa", 0, 100), ("bbb", 3, 101), ("ccc", 9, 140)] {
            let name = format!("{commit}-{run}");
            made(directory.path(), &name, (commit, "GPU0"), day, us + run);
        }
        made(directory.path(), &format!("h{run}"), ("bbb", hostile), 3, 200 + run);
    }
    let page = directory.path().join("history.html");
    let mut index = Command::new(built::ggprof());
    tool::output(index.arg("index").arg(directory.path()).arg("--html").arg(&page)).unwrap();
    let output = checks.arg(page).output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
