//! Which experts of a model were used.

use super::phases::kind_name;
use crate::document::Block;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::experts::{ExpertLayer, Saving, SeenBy, experts, savings};
use ggprof_analysis::phases;
use ggprof_trace::Trace;

const EXPERTS: [Column; 16] = [
    Column::left("phase", "phase", 0),
    Column::right("layer", "layer", 0),
    Column::left("seen_by", "seen by", 3),
    Column::right("graph_runs", "graph runs", 4),
    Column::right("tokens", "tokens", 2),
    Column::right("tokens_read", "of them read", 4),
    Column::right("experts", "experts", 1),
    Column::right("used", "used", 0),
    Column::right("evenness", "evenness", 1),
    Column::right("hottest", "hottest", 0),
    Column::right("hottest_share", "its share", 0),
    Column::right("hottest_quarter_share", "hottest quarter", 1),
    Column::right("copied_bytes", "copied", 3),
    Column::right("expert_bytes", "", 9),
    Column::left("heat", "uses by expert", 2),
    Column::left("uses_by_expert", "", 9),
];

const SAVINGS: [Column; 5] = [
    Column::right("experts", "experts kept a layer", 0),
    Column::right("memory_bytes", "memory for them", 0),
    Column::right("saved_bytes", "copies saved", 0),
    Column::right("copied_bytes", "of", 0),
    Column::right("saved_share", "% saved", 0),
];

const NONE: &str = "No use of experts is known. It is known of experts that the processor computes \
                    with, and of those that are copied to a device, in recordings of ggprof's own \
                    from format 5 on.";

/// Characters of a row of heat at most; more experts share one.
const MOST_BUCKETS: usize = 64;

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let layers = experts(trace, &phases(trace));
    if layers.is_empty() {
        document.blocks.push(Block::Warning(NONE.to_owned()));
    }
    document.heading("experts", "Experts by layer");
    let rows = layers.iter().map(row).collect();
    document.table(Table { key: "experts", columns: EXPERTS.to_vec(), rows });
    let savings = savings(&layers);
    if !savings.is_empty() {
        let text = "Estimate: copies saved if the experts used most were in the device's memory";
        document.heading("expert_savings", text);
        let rows = savings.iter().map(saving_row).collect();
        document.table(Table { key: "expert_savings", columns: SAVINGS.to_vec(), rows });
    }
}

fn row(layer: &ExpertLayer) -> Vec<Cell> {
    let by_choices = layer.seen_by == SeenBy::Choices;
    let if_choices = |count: u64| Cell::or_nothing(by_choices.then_some(count.into()), Cell::Count);
    let if_copies =
        |bytes: u64| Cell::or_nothing((!by_choices).then_some(bytes.into()), Cell::Bytes);
    let hottest = layer.hottest();
    let quarter = layer.share_of_hottest(layer.uses.len().div_ceil(4));
    let uses: Vec<String> = layer.uses.iter().map(u64::to_string).collect();
    vec![
        Cell::or_nothing(layer.phase, |phase| Cell::text(kind_name(phase))),
        layer.layer.map_or(Cell::text("none"), |layer| Cell::Number(layer.0.into())),
        Cell::text(if by_choices { "choices" } else { "copies" }),
        Cell::Count(layer.graph_runs.into()),
        if_choices(layer.tokens),
        if_choices(layer.tokens_read),
        Cell::Count(layer.uses.len() as u128),
        Cell::Count(layer.used() as u128),
        Cell::or_nothing(layer.evenness(), Cell::Share),
        Cell::or_nothing(hottest, |(expert, _)| Cell::Number(expert as i64)),
        Cell::or_nothing(hottest, |(_, share)| Cell::Share(share)),
        Cell::or_nothing(quarter, Cell::Share),
        if_copies(layer.copied_bytes),
        if_copies(layer.expert_bytes),
        Cell::text(heat(&layer.uses)),
        Cell::text(uses.join(" ")),
    ]
}

fn saving_row(saving: &Saving) -> Vec<Cell> {
    let share =
        (saving.copied_bytes > 0).then(|| saving.saved_bytes as f64 / saving.copied_bytes as f64);
    vec![
        Cell::Count(saving.experts as u128),
        Cell::Bytes(saving.memory_bytes.into()),
        Cell::Bytes(saving.saved_bytes.into()),
        Cell::Bytes(saving.copied_bytes.into()),
        Cell::or_nothing(share, Cell::Share),
    ]
}

/// One character an expert, or a few neighbours together, as high as it was used; a dot for none.
fn heat(uses: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let together = uses.len().div_ceil(MOST_BUCKETS).max(1);
    let sums: Vec<u64> = uses.chunks(together).map(|uses| uses.iter().sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let height = |sum: u64| HEIGHTS[(sum * (HEIGHTS.len() as u64 - 1) / most) as usize];
    sums.into_iter().map(|sum| if sum == 0 { '·' } else { height(sum) }).collect()
}

#[cfg(test)]
mod tests {
    use super::heat;

    #[test]
    fn heat_is_as_high_as_the_use() {
        assert_eq!(heat(&[0, 1, 100, 50]), "·▁█▄");
        assert_eq!(heat(&[]), "");
        assert_eq!(heat(&[3; 128]).chars().count(), 64);
        assert_eq!(heat(&[u64::MAX / 8, 1]), "█▁");
    }
}
