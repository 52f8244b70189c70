//! Prompts that are computed again.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::PromptAgain;

impl InWords for PromptAgain {
    fn sentence(&self, _: &Told<'_>) -> String {
        "prompts seem to be processed again, from their beginning on".to_owned()
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} began at position 0 and had more tokens than the one before with its answer, as in a \
             conversation: {} of {} tokens",
            match self.requests {
                1 => "a request".to_owned(),
                requests => format!("{} requests", units::count(requests.into())),
            },
            units::count(self.tokens.into()),
            units::count(self.of_tokens.into())
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "keep the beginning of the prompt the same, leave cache_prompt on, \
         and send a conversation to the same slot (id_slot, -np 1); --swa-full for models with \
         a sliding window"
            .to_owned()
    }
}
