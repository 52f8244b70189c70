//! What the program itself does between two computations.

use super::{InWords, Told, time};
use ggprof_analysis::findings::Program;

impl InWords for Program {
    fn sentence(&self, _: &Told<'_>) -> String {
        match self.is_guess {
            false => "the program itself works or waits between two calls of libllama".to_owned(),
            true => "nothing is computed between two graph runs".to_owned(),
        }
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let from = if self.is_guess { "a graph run" } else { "a call" };
        let (end_ns, start_ns) = self.longest;
        let (each, longest) = (time(self.per_token_ns), time(start_ns - end_ns));
        format!("{each} from the end of {from} to the next, {longest} at most")
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "cheaper sampling (fewer --samplers, no grammar), and nothing slow \
         between two tokens; `perf` shows what the program does there"
            .to_owned()
    }
}
