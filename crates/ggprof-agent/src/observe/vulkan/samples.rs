//! Which graphs have their parts timed, when not all have. A timestamp costs a fast device a
//! microsecond or two, and a token of a small model has hundreds of dispatches: so of each
//! shape of graph the first two are timed in their parts (the second is warm), and then one of
//! many. Of the others the beginning and the end are timed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ggprof_spool::layout::{NO_NODE, WORK_WHOLE_SPLIT};

use super::place::Place;
use super::recording::{Name, Work};
use crate::config::Vulkan;
use crate::observe::visits::Visits;

/// One in so many of a shape: with groups timed at a quarter of a fast GPU's time, half a
/// hundredth in all.
const EVERY: u32 = 64;
/// Shapes to keep in mind; a program that makes more is looked at afresh.
const MOST_SHAPES: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    shapes: Mutex<HashMap<u32, Shape>>,
}

#[derive(Debug, Default)]
struct Shape {
    seen: u32,
    /// The last position that had work of the device.
    last: u32,
}

/// What a command of a split means for its timing.
#[derive(Debug)]
pub(crate) enum Sampled {
    /// It is timed itself.
    InParts,
    /// It is the first of a split that is timed as a whole.
    Begins(Work),
    Within,
}

impl Samples {
    pub(crate) fn sampled(&self, mode: Vulkan, visits: &mut Visits) -> Sampled {
        match visits.in_parts {
            Some(true) => Sampled::InParts,
            Some(false) => Sampled::Within,
            None => {
                let in_parts = mode != Vulkan::Sample || self.next(visits.shape);
                visits.in_parts = Some(in_parts);
                if in_parts { Sampled::InParts } else { Sampled::Begins(whole(visits)) }
            }
        }
    }

    /// A command buffer of the split ends; its end, if this is the last one.
    pub(crate) fn end(&self, visits: &Visits) -> Option<Work> {
        let position = visits.position()?;
        let mut shapes = self.shapes();
        let shape = shapes.get_mut(&visits.shape)?;
        if visits.in_parts == Some(true) {
            shape.last = shape.last.max(position);
            return None;
        }
        (position >= shape.last).then(|| whole(visits))
    }

    /// Whether the next graph of this shape is timed in its parts.
    fn next(&self, shape: u32) -> bool {
        let mut shapes = self.shapes();
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        let shape = shapes.entry(shape).or_default();
        shape.seen += 1;
        shape.seen <= 2 || shape.seen.is_multiple_of(EVERY)
    }

    fn shapes(&self) -> MutexGuard<'_, HashMap<u32, Shape>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn whole(visits: &Visits) -> Work {
    let place = Place { split: visits.split, position: NO_NODE, backend: visits.backend, cause: 0 };
    Work::new(WORK_WHOLE_SPLIT, Name::Text(""), place, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_sampled_cold_warm_and_now_and_then() {
        let samples = Samples::default();
        let sampled: Vec<u32> = (1..=130).filter(|_| samples.next(7)).collect();
        assert_eq!(sampled, [1, 2, 64, 128]);
        assert!(samples.next(8), "another shape");
    }
}
