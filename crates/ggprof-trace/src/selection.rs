//! A part of a recording: some of its graph runs, with all that belongs to them.

use crate::model::{EventId, Events, GraphRunId, NewEvent, Trace};

impl Trace {
    /// Leaves the graph runs that are wanted, and of what belongs to none the part that lies
    /// within the times. What is described stays described.
    pub fn select(&mut self, wanted: &[bool], (from_ns, to_ns): (u64, u64)) {
        let mut next = 0;
        let places: Vec<Option<GraphRunId>> = (0..self.graph_runs.len())
            .map(|run| {
                let is_wanted = wanted.get(run).copied().unwrap_or(false);
                is_wanted.then(|| {
                    next += 1;
                    GraphRunId(next - 1)
                })
            })
            .collect();
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
        self.transfers.retain(|it| is_within(it.start_ns, it.end_ns) || is_in_run(it.start_ns));
        self.is_part = true;
        for (number, run) in (1..).zip(&mut self.graph_runs) {
            // So that it shows where runs are missing.
            run.number = run.number.or(Some(number));
        }
        let mut places = places.iter();
        self.graph_runs.retain(|_| places.next().is_some_and(Option::is_some));
    }

    /// Takes an event over, which belongs to this run here.
    fn take_over(&mut self, old: &Events, id: EventId, graph_run: Option<GraphRunId>) -> EventId {
        let event = old.get(id);
        let new = self.events.push(NewEvent {
            kind: event.kind,
            node: event.node,
            backend: event.backend,
            source_backend: event.source_backend,
            split: event.split,
            graph_run,
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
            bytes: event.bytes,
            measured: event.measured,
            threads: old.threads(id),
        });
        if event.charged_ns != event.duration_ns {
            self.events.set_charge(new, event.charged_ns);
        }
        new
    }

    /// What is kept per event.
    fn select_details(&mut self, old: &Events, ids: &[Option<EventId>]) {
        let id = |event: EventId| ids.get(event.0 as usize).copied().flatten();
        let shares = old.thread_shares.iter().filter_map(|share| {
            let event = id(share.event)?;
            Some(crate::ThreadShare { event, ..*share })
        });
        self.events.thread_shares = shares.collect();
        self.copy_ends.retain_mut(|ends| match id(ends.event) {
            Some(event) => {
                ends.event = event;
                true
            }
            None => false,
        });
        self.device_work.retain_mut(|work| match id(work.event) {
            Some(event) => {
                work.event = event;
                true
            }
            None => false,
        });
    }
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
}
