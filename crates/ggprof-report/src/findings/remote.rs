//! Servers of ggml's RPC: the network, graphs that are sent again, and a slow server.

use super::{InWords, Told, time};
use crate::units;
use ggprof_analysis::findings::{GraphSentAgain, RoundTrips, SlowServer};

impl InWords for RoundTrips {
    fn sentence(&self, _: &Told<'_>) -> String {
        match self.servers {
            1 => "the network to the server takes the time".to_owned(),
            servers => format!("the network to {servers} servers takes the time"),
        }
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let each = time(self.wire_ns_per_step);
        let steps = self.steps_per_run;
        let steps = format!("{steps:.0} steps of servers a graph run, {each} on the wire each");
        match self.bytes_per_run {
            0 => steps,
            bytes => format!(
                "{steps}; {:.0} answers waited for and {} a graph run",
                self.round_trips_per_run,
                units::bytes(bytes as f64)
            ),
        }
    }

    fn advice(&self, _: &Told<'_>) -> String {
        let fewer = if self.servers > 1 { "fewer servers in --rpc, " } else { "" };
        format!(
            "{fewer}more layers in this machine's own memory (-ngl, -ts), a cable instead of \
             wireless, or more sequences at once (-np): one round trip then serves several tokens"
        )
    }
}

impl InWords for GraphSentAgain {
    fn sentence(&self, _: &Told<'_>) -> String {
        "the graph is sent to the servers again each time, although it stays the same".to_owned()
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} besides the tensors for each of {:.0} graphs a graph run",
            units::bytes(self.bytes_per_step as f64),
            self.steps_per_run
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "the same newer build on all machines: since 2026 ggml sends a \
         graph once and then asks to compute it again; and do not set LLAMA_GRAPH_REUSE_DISABLE"
            .to_owned()
    }
}

impl InWords for SlowServer {
    fn sentence(&self, told: &Told<'_>) -> String {
        format!("{} is slower than the other servers", told.trace.backend(self.server).name)
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        format!(
            "each of its {} layers takes {}, where {} takes {}",
            self.layers,
            time(self.layer_ns),
            told.trace.backend(self.best).name,
            time(self.best_layer_ns)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "fewer layers for it: -ts (--tensor-split), in the order of --rpc; \
         its own recording says why it is slow (`ggprof explain` of the server alone)"
            .to_owned()
    }
}
