//! A part of a recording: some of its graph runs, with all that belongs to them.

use crate::done::done;
use crate::model::{
    Event, EventId, Events, GraphRun, GraphRunId, Measured, NewEvent, Signature, Trace,
};

impl Trace {
    /// Leaves the graph runs that are wanted, and of what belongs to none the part that lies
    /// within the times. What is described stays described.
    pub fn select(&mut self, wanted: &[bool], (from_ns, to_ns): (u64, u64)) {
        let done = done(self);
        let places = places(self.graph_runs.len(), wanted);
        let place = |run: GraphRunId| places.get(run.0 as usize).copied().flatten();
        let is_within = |start_ns: u64, end_ns: u64| start_ns >= from_ns && end_ns <= to_ns;
        let old = std::mem::take(&mut self.events);
        let mut ids: Vec<Option<EventId>> = Vec::with_capacity(old.len());
        for event in old.iter() {
            let run = event.graph_run.map(place);
            let stays =
                run.map_or_else(|| is_within(event.start_ns, event.end_ns()), |run| run.is_some());
            ids.push(stays.then(|| self.take_over(&old, event.id, run.flatten())));
        }
        if self.has_untimed() {
            self.keep_elsewhere(&old, &mut ids);
        }
        self.select_details(&old, &ids);
        self.expert_uses.select(place);
        let runs = self.graph_runs.iter().zip(&places).filter(|(_, place)| place.is_some());
        let runs: Vec<(u64, u64)> = runs.map(|(run, _)| (run.start_ns, run.end_ns)).collect();
        // A pipeline is compiled inside the run that needs it first.
        let is_in_run = |ns: u64| runs.iter().any(|&(start, end)| start <= ns && ns < end);
        self.host_tasks.retain_mut(|task| match task.graph_run {
            Some(run) => {
                task.graph_run = place(run);
                task.graph_run.is_some()
            }
            None => {
                let end_ns = task.start_ns.saturating_add(task.duration_ns);
                is_within(task.start_ns, end_ns) || is_in_run(task.start_ns)
            }
        });
        self.remote_runs
            .retain_mut(|it| place(it.graph_run).map(|run| it.graph_run = run).is_some());
        self.graph_calls
            .retain_mut(|it| place(it.graph_run).map(|run| it.graph_run = run).is_some());
        self.transfers.retain(|it| is_within(it.start_ns, it.end_ns) || is_in_run(it.start_ns));
        self.is_part = true;
        self.select_runs(&places, &done);
    }

    /// Of runs that are left out only the times stay, because what the others are depends on them.
    fn select_runs(&mut self, places: &[Option<GraphRunId>], done: &[u64]) {
        for (number, run) in (1..).zip(&mut self.graph_runs) {
            // So that it shows where runs are missing.
            run.number = run.number.or(Some(number));
        }
        for ((run, place), done_ns) in self.graph_runs.iter().zip(places).zip(done) {
            if place.is_none() {
                self.left_out.push(GraphRun { end_ns: *done_ns, ..*run });
            }
        }
        let mut places = places.iter();
        self.graph_runs.retain(|_| places.next().is_some_and(Option::is_some));
    }

    /// Whether there is anything whose time is estimated from what a device timed.
    fn has_untimed(&self) -> bool {
        let is_untimed = |event: &Event| match event.is_op() {
            true => self.op_name(event.node) == Signature::WHOLE_SPLIT,
            false => matches!(event.measured, Measured::HostCall | Measured::Host),
        };
        self.events.iter().any(|event| is_untimed(&event))
    }

    /// Keeps what devices timed outside of the part.
    fn keep_elsewhere(&mut self, old: &Events, ids: &mut [Option<EventId>]) {
        let is_timed =
            |event: &Event| matches!(event.measured, Measured::Device | Measured::Modelled);
        for event in old.iter().filter(is_timed) {
            let is_whole = self.op_name(event.node) == Signature::WHOLE_SPLIT;
            let id = &mut ids[event.id.0 as usize];
            if id.is_some() || is_whole {
                continue;
            }
            let next = EventId((self.events.len() + self.elsewhere.len()) as u32);
            // They belong together as before, and to no run of the part.
            let graph_run = event.graph_run.map(|GraphRunId(run)| GraphRunId(u32::MAX - run));
            self.elsewhere.push(Event { id: next, graph_run, ..event });
            *id = Some(next);
        }
    }

    /// Takes an event over, which belongs to this run here.
    fn take_over(&mut self, old: &Events, id: EventId, graph_run: Option<GraphRunId>) -> EventId {
        let event = old.get(id);
        let new = self.events.push(NewEvent { graph_run, ..old.again(event) });
        if event.charged_ns != event.duration_ns {
            self.events.set_charge(new, event.charged_ns);
        }
        new
    }

    /// What is kept per event; of those elsewhere, only the memory that copies are from and to.
    fn select_details(&mut self, old: &Events, ids: &[Option<EventId>]) {
        let kept = |event: EventId| ids.get(event.0 as usize).copied().flatten();
        let own = self.events.len() as u32;
        let id = |event: EventId| kept(event).filter(|id| id.0 < own);
        let shares = old.thread_shares.iter().filter_map(|share| {
            let event = id(share.event)?;
            Some(crate::ThreadShare { event, ..*share })
        });
        self.events.thread_shares = shares.collect();
        self.copy_ends.retain_mut(|ends| match kept(ends.event) {
            Some(event) => {
                ends.event = event;
                true
            }
            None => false,
        });
        self.copy_ends.sort_by_key(|ends| ends.event);
        self.device_work.retain_mut(|work| match id(work.event) {
            Some(event) => {
                work.event = event;
                true
            }
            None => false,
        });
    }
}

/// Where each run is when those that are not wanted are gone.
fn places(runs: usize, wanted: &[bool]) -> Vec<Option<GraphRunId>> {
    let is_wanted = |run| wanted.get(run).copied().unwrap_or(false);
    let mut next = (0..).map(GraphRunId);
    (0..runs).map(|run| if is_wanted(run) { next.next() } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use crate::text_fixture;

    #[test]
    fn what_belongs_to_a_run_goes_with_it() {
        let mut trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..10
             run 10..20
             run 20..30
             op GPU ADD 0..5 a run=0
             op GPU MUL 10..15 b run=1
             kernel mul 11..14
             op GPU ADD 20..25 c run=2
             copy GPU H2D 6..9 4 x
             copy GPU H2D 16..19 4 y
             wait 15..18 run=1
             wait 25..28 run=2
             compile 2..4 early
             compile 27..29 late",
        );
        trace.select(&[false, true, true], (10, 22));
        let events: Vec<_> = trace
            .events
            .iter()
            .map(|event| {
                (trace.op_name(event.node), event.start_ns, event.graph_run.map(|it| it.0))
            })
            .collect();
        assert_eq!(events, [("MUL", 10, Some(0)), ("ADD", 20, Some(1)), ("copy_H2D", 16, None)]);
        assert_eq!((trace.graph_runs.len(), trace.host_tasks.len()), (2, 3));
        assert_eq!(trace.device_work[0].event.0, 0);
        assert_eq!(trace.host_tasks[1].graph_run.map(|run| run.0), Some(1));
    }

    #[test]
    fn what_a_device_timed_elsewhere_is_kept_for_what_it_did_not() {
        let text = "backend 0 GPU gpu
             memory p CUDA_Host weights host
             memory d GPU compute device
             run 0..10
             run 10..20
             op GPU ADD 0..5 a run=0 measured=device
             copy GPU H2D 6..9 4 x run=0 measured=device
             ends p d
             op GPU SPLIT 10..15 b run=1 measured=device
             copy GPU H2D 15..18 4 x run=1 measured=host_call
             ends p d";
        let mut trace = text_fixture::parse(text);
        trace.select(&[false, true], (10, 20));
        let elsewhere: Vec<_> =
            trace.elsewhere.iter().map(|event| (event.id.0, event.start_ns)).collect();
        assert_eq!((trace.events.len(), &elsewhere[..]), (2, &[(2, 0), (3, 6)][..]));
        assert_eq!(trace.event(crate::EventId(3)).start_ns, 6);
        let of_copy = |id| trace.ends_of(crate::EventId(id)).map(|ends| ends.source);
        assert_eq!((of_copy(1).is_some(), of_copy(1)), (true, of_copy(3)));
        let mut all_timed = text_fixture::parse(&text.replace("SPLIT", "MUL").replace("_call", ""));
        all_timed.select(&[true, false], (0, 10));
        assert!(all_timed.elsewhere.is_empty());
    }
}
