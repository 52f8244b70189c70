//! How pairs of recordings are kept from one comparison to the next: as a list of JSON objects.

use super::{Origin, Pair, PhaseName};
use crate::PhaseKind;
use serde_json::{Value, json};

const KINDS: [(&str, PhaseKind); 6] = [
    ("pp", PhaseKind::Prompt),
    ("tg", PhaseKind::Generation),
    ("mixed", PhaseKind::Mixed),
    ("enc", PhaseKind::Encoding),
    ("draft", PhaseKind::Draft),
    ("graphs", PhaseKind::Graph),
];

/// The pairs of such a list, without what is none; `None` where it is no list.
pub fn read_pairs(text: &[u8]) -> Option<Vec<Pair>> {
    let kept: Value = serde_json::from_slice(text).ok()?;
    Some(kept.as_array()?.iter().filter_map(pair).collect())
}

pub fn written_pairs(pairs: &[Pair]) -> Vec<u8> {
    let rows: Vec<Value> = pairs.iter().map(value).collect();
    format!("{}\n", Value::from(rows)).into_bytes()
}

fn value(pair: &Pair) -> Value {
    let kind = KINDS.iter().find(|(_, kind)| *kind == pair.phase.kind).map(|(name, _)| *name);
    json!({
        "program": pair.of.program, "model": pair.of.model, "settings": pair.of.settings,
        "machine": pair.of.machine,
        "kind": kind, "phase": pair.phase.label, "recordings": pair.recordings,
        "difference": pair.share,
    })
}

fn pair(value: &Value) -> Option<Pair> {
    let name = value["kind"].as_str()?;
    let kind = KINDS.iter().find(|(it, _)| *it == name)?.1;
    let label = value["phase"].as_str().map(str::to_owned);
    let share = value["difference"].as_f64().filter(|it| it.is_finite() && *it >= 0.0)?;
    let text = |of: &Value| of.as_str().map(str::to_owned);
    let [program, model, settings, machine] =
        ["program", "model", "settings", "machine"].map(|key| text(&value[key]));
    let of = Origin { program: program?, model: model?, settings: settings?, machine: machine? };
    let recordings = [text(&value["recordings"][0])?, text(&value["recordings"][1])?];
    Some(Pair { of, phase: PhaseName { kind, label }, recordings, share })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those without recordings were kept by an older version, and could count twice; of those without
    /// settings it is not known what they are of.
    #[test]
    fn what_is_no_pair_is_left_out() {
        let pair = |more: &str| {
            format!(
                r#"{{"program": "a", "model": "", "settings": "2 threads", "machine": "m",
                    "kind": "tg", "phase": null {more}}}"#
            )
        };
        let whole = pair(r#", "recordings": ["1", "2"], "difference": 0.25"#);
        let text = [
            whole.clone(),
            pair(r#", "difference": 0.25"#),
            pair(r#", "recordings": ["1"], "difference": 0.25"#),
            pair(r#", "recordings": ["1", "2"], "difference": -1.0"#),
            whole.replace("tg", "other"),
            whole.replace("settings", "other"),
            "7".to_owned(),
        ];
        let pairs = read_pairs(format!("[{}]", text.join(",")).as_bytes()).unwrap();
        let phase = PhaseName { kind: PhaseKind::Generation, label: None };
        let (program, model) = ("a".to_owned(), String::new());
        let (settings, machine) = ("2 threads".to_owned(), "m".to_owned());
        let of = Origin { program, model, settings, machine };
        let recordings = ["1".to_owned(), "2".to_owned()];
        assert_eq!(pairs, [Pair { of, phase, recordings, share: 0.25 }]);
        assert_eq!(read_pairs(&written_pairs(&pairs)), Some(pairs));
        assert_eq!(read_pairs(b"{}"), None);
    }
}
