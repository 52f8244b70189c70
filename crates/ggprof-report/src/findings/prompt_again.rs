//! Prompts that are computed again.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::PromptAgain;

impl InWords for PromptAgain {
    fn sentence(&self, _: &Told<'_>) -> String {
        let tokens = units::count(self.tokens.into());
        format!("prompts are processed again: {tokens} tokens had been computed before")
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} request(s) began at position 0, and {} of their {} tokens were in the context before",
            self.requests,
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
