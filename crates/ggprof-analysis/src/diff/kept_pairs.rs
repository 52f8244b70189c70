//! How pairs of recordings are kept from one comparison to the next: as a list of JSON objects.

use super::{Pair, PhaseName};
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
        "program": pair.program, "kind": kind, "phase": pair.phase.label, "difference": pair.share,
    })
}

fn pair(value: &Value) -> Option<Pair> {
    let name = value["kind"].as_str()?;
    let kind = KINDS.iter().find(|(it, _)| *it == name)?.1;
    let label = value["phase"].as_str().map(str::to_owned);
    let share = value["difference"].as_f64().filter(|it| it.is_finite() && *it >= 0.0)?;
    let program = value["program"].as_str()?.to_owned();
    Some(Pair { program, phase: PhaseName { kind, label }, share })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pair_is_left_out() {
        let text = r#"[{"program": "a", "kind": "tg", "phase": null, "difference": 0.25},
            {"program": "a", "kind": "tg", "phase": "tg8", "difference": -1.0},
            {"program": "a", "kind": "other", "phase": "tg8", "difference": 1.0}, 7]"#;
        let pairs = read_pairs(text.as_bytes()).unwrap();
        let phase = PhaseName { kind: PhaseKind::Generation, label: None };
        assert_eq!(pairs, [Pair { program: "a".into(), phase, share: 0.25 }]);
        assert_eq!(read_pairs(&written_pairs(&pairs)), Some(pairs));
        assert_eq!(read_pairs(b"{}"), None);
    }
}
