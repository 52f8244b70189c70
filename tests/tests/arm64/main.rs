//! aarch64, emulated: the same agent, on programs and libraries that are published for it.

mod attached;
mod programs;
mod system;

use ggprof_e2e::recording::Recording;
use ggprof_spool::layout::{Covered, CoveredHow};

/// How the CPU's ops and the waits of its threads were seen; of two records the later one holds.
fn seen(recording: &Recording) -> [CoveredHow; 2] {
    [Covered::Ops, Covered::BarrierWaits].map(|what| {
        let of_it = recording.coverage.iter().find(|it| it.what == what as u16);
        of_it
            .and_then(|it| CoveredHow::of(it.how))
            .unwrap_or_else(|| panic!("nothing is said of {what:?}: {:?}", recording.coverage))
    })
}

fn check_every_node(recording: &Recording) {
    assert!(!recording.splits.is_empty());
    for split in recording.splits.values() {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
    assert_eq!((recording.lost(), &recording.damage[..]), (0, &[][..]));
}

/// Threads compute one op after the other, and no thread is in two at once.
fn check_order(recording: &Recording) {
    for split in recording.splits.values() {
        let length = split.end.expect("it ended").ticks - split.begin.ticks;
        let mut over = 0;
        for op in &split.ops {
            assert!(op.start >= over, "{op:?} starts before {over}");
            over = op.start + op.duration;
            assert!(op.busy_sum <= u64::from(op.threads) * op.duration, "{op:?}");
        }
        assert!(over <= length + 1, "ops until {over} in a split of {length}");
    }
}
