//! R13: prompts that begin anew although the text before them was in the context.
//!
//! Tokens are never recorded. What gives it away is a conversation: each prompt is longer than all
//! that came before it in the same context, and nothing of it is reused. A program that clears the whole
//! memory in between, as benchmarks do, means to begin anew.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::phases::PhaseKind;
use crate::requests::Request;

#[derive(Debug, Clone, PartialEq)]
pub struct PromptAgain {
    pub requests: u64,
    pub tokens: u64,
    pub of_tokens: u64,
}

pub(super) const RULE: Rule = Rule(13);

/// Of a prompt, taken over from the request before.
const REUSED: f64 = 0.1;
/// Shorter ones are no matter.
const LEAST_TOKENS: u64 = 32;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if budget.kind != PhaseKind::Prompt {
        return Vec::new();
    }
    let requests: Vec<&Request> =
        scene.phases.requests.iter().filter(|request| !request.is_warm_up).collect();
    let (mut again, mut tokens, mut of_tokens, mut cost_ns) = (0, 0, 0, 0);
    for pair in requests.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let is_inside = budget.phases.iter().any(|&phase| {
            let phase = &scene.phases.phases[phase as usize];
            phase.start_ns <= after.start_ns && after.start_ns < phase.end_ns
        });
        let is_wanted = is_inside && !begins_on_purpose(scene, after);
        let Some(had) = had_before(before, after).filter(|_| is_wanted) else { continue };
        again += 1;
        tokens += had;
        of_tokens += after.prompt_tokens;
        let prompt_ns = after.first_token_ns.unwrap_or(0);
        cost_ns += prompt_ns * had / after.prompt_tokens.max(1);
    }
    let what = What::PromptAgain(PromptAgain { requests: again, tokens, of_tokens });
    let certainty = Certainty::Likely;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

fn begins_on_purpose(scene: &Scene<'_>, request: &Request) -> bool {
    let steps = &scene.phases.steps;
    let first = steps.partition_point(|step| step.start_ns < request.start_ns);
    let of_it = steps[first..].iter().take_while(|step| step.start_ns == request.start_ns);
    of_it.into_iter().any(|step| step.is_after_clear)
}

/// How many tokens of a prompt the request before had in the context, if it goes on with it and
/// reuses none.
fn had_before(before: &Request, after: &Request) -> Option<u64> {
    let had = before.reused_tokens + before.prompt_tokens + before.generated.saturating_sub(1);
    let goes_on = before.generated > 0 && after.prompt_tokens + after.reused_tokens > had;
    let is_anew = (after.reused_tokens as f64) < REUSED * had as f64;
    (goes_on && is_anew && had >= LEAST_TOKENS).then(|| had.saturating_sub(after.reused_tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::check;

    /// A prompt of 100 tokens and 20 of an answer; then the same with a question more.
    fn conversation(second: &str) -> String {
        let mut text = String::from("batch 0..100 0:0+100!1\nrun 0..100 batch=0\n");
        for token in 0..20 {
            let (start, position) = (100 + token * 10, 100 + token);
            text += &format!("batch {start}..{} 0:{position}+1!1\n", start + 10);
            text += &format!("run {start}..{} batch={}\n", start + 10, token + 1);
        }
        text + second
    }

    #[test]
    fn the_second_prompt_begins_anew() {
        let anew = "change 900 removed 0 0
             batch 1000..1240 0:0+150!1
             run 1000..1240 batch=21
             batch 1240..1250 0:150+1!1
             run 1240..1250 batch=22";
        let reused = "batch 1000..1240 0:120+30!1
             run 1000..1240 batch=21
             batch 1240..1250 0:150+1!1
             run 1240..1250 batch=22";
        let (anew, reused) = (conversation(anew), conversation(reused));
        let found = check(RULE, &anew, 240 * 120 / 150, &reused);
        assert_eq!(
            found.what,
            What::PromptAgain(PromptAgain { requests: 1, tokens: 120, of_tokens: 150 })
        );
        // A benchmark that goes on with a longer prompt, and one that repeats the same.
        let cleared = anew.replace("removed 0 0", "cleared");
        check(RULE, &anew, 240 * 120 / 150, &cleared);
        let same = anew.replace("0:0+150", "0:0+120").replace("0:150+1", "0:120+1");
        check(RULE, &anew, 240 * 120 / 150, &same);
    }
}
