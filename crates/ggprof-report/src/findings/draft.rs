//! A draft model that does not pay.

use super::{InWords, Told, time};
use ggprof_analysis::findings::Draft;

impl InWords for Draft {
    fn sentence(&self, _: &Told<'_>) -> String {
        "the draft model costs more time than its tokens save".to_owned()
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} of drafting a token; a step of the model takes {} and keeps {:.2} tokens",
            time(self.draft_ns_per_token),
            time(self.target_step_ns),
            self.tokens_per_step
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "no draft model, fewer drafted tokens (--spec-draft-n-max, older builds: --draft-max), or a smaller draft model".to_owned()
    }
}
