//! R13: prompts that begin anew although the text before them was in the context.
//!
//! Tokens are never recorded. What gives it away is a conversation: each prompt is longer than all
//! that came before it in the same context, and nothing of it is reused. One longer prompt behind a shorter one
//! is as likely to be another question, so nearly all of several have to be. A program that clears the
//! whole memory in between, as benchmarks do, means to begin anew.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::phases::PhaseKind;
use crate::requests::{Request, Slot};
use hashbrown::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub struct PromptAgain {
    pub requests: u64,
    pub tokens: u64,
    pub of_tokens: u64,
    /// From the begin to the first token of the prompt that took longest.
    pub longest: (u64, u64),
}

pub(super) const RULE: Rule = Rule(13);

/// Of a prompt, taken over from the request before.
const REUSED: f64 = 0.1;
/// Shorter ones are no matter.
const LEAST_TOKENS: u64 = 32;
/// Of prompts that have nothing to do with each other, fewer than half are longer than the one before with its
/// answer. That this many all are is one case of 24.
const LEAST_REQUESTS: usize = 3;
/// Of all that begin anew.
const MOST_OF_THEM: f64 = 0.75;

/// A request that begins at the first position, behind another one of its slot.
struct Anew<'r> {
    request: &'r Request,
    /// Tokens that the one before had in the context.
    had: u64,
    /// It may go on with all of them.
    is_longer: bool,
}

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if budget.kind != PhaseKind::Prompt {
        return Vec::new();
    }
    let all = begun_anew(scene);
    if !is_conversation(&all) {
        return Vec::new();
    }
    let (mut again, mut tokens, mut of_tokens, mut cost_ns) = (0, 0, 0, 0);
    let mut longest = (0, 0);
    let is_inside = |start_ns: u64| {
        budget.phases.iter().any(|&phase| {
            let phase = &scene.phases.phases[phase as usize];
            (phase.start_ns..phase.end_ns).contains(&start_ns)
        })
    };
    for Anew { request, had, is_longer } in all {
        if !is_longer || !is_inside(request.start_ns) {
            continue;
        }
        again += 1;
        tokens += had;
        of_tokens += request.prompt_tokens;
        let prompt_ns = request.first_token_ns.unwrap_or(0);
        if prompt_ns > longest.1 - longest.0 {
            longest = (request.start_ns, request.start_ns + prompt_ns);
        }
        cost_ns += prompt_ns * had / request.prompt_tokens.max(1);
    }
    let what = What::PromptAgain(PromptAgain { requests: again, tokens, of_tokens, longest });
    let certainty = Certainty::Likely;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

fn begun_anew<'s>(scene: &'s Scene<'_>) -> Vec<Anew<'s>> {
    let mut before: HashMap<Slot, &Request> = HashMap::new();
    let mut all = Vec::new();
    for request in scene.phases.requests.iter().filter(|request| !request.is_warm_up) {
        let before = before.insert(request.slot, request);
        let before = before.filter(|_| !begins_on_purpose(scene, request));
        all.extend(before.and_then(|before| anew(before, request)));
    }
    all
}

fn is_conversation(all: &[Anew<'_>]) -> bool {
    let longer = all.iter().filter(|it| it.is_longer).count();
    longer >= LEAST_REQUESTS && longer as f64 >= MOST_OF_THEM * all.len() as f64
}

fn begins_on_purpose(scene: &Scene<'_>, request: &Request) -> bool {
    let steps = &scene.phases.steps;
    let first = steps.partition_point(|step| step.start_ns < request.start_ns);
    let of_it = steps[first..].iter().take_while(|step| step.start_ns == request.start_ns);
    of_it.into_iter().any(|step| step.is_after_clear)
}

/// If it reuses nothing of what the request before left in the context.
fn anew<'r>(before: &Request, request: &'r Request) -> Option<Anew<'r>> {
    let had = before.reused_tokens + before.prompt_tokens + before.generated.saturating_sub(1);
    let is_anew = (request.reused_tokens as f64) < REUSED * had as f64;
    let is_longer = before.generated > 0 && request.prompt_tokens + request.reused_tokens > had;
    let had = had.saturating_sub(request.reused_tokens);
    (is_anew && had >= LEAST_TOKENS).then_some(Anew { request, had, is_longer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::check;

    /// Prompts of so many tokens, each with an answer of one token, which take 1,000 ns and 10. The first
    /// ones of a prompt may be there already.
    fn requests(prompts: &[(u64, u64)]) -> String {
        let (mut calls, mut runs) = (String::new(), String::new());
        for (at, (reused, prompt)) in (0..).zip(prompts) {
            let (start, behind) = (at * 2000, reused + prompt);
            let (answered, end) = (start + 1000, start + 1010);
            calls += &format!("change {start} removed 0 {reused}\n");
            calls += &format!("batch {start}..{answered} 0:{reused}+{prompt}!1\n");
            calls += &format!("batch {answered}..{end} 0:{behind}+1!1\n");
            runs += &format!("run {start}..{answered} batch={}\n", 2 * at);
            runs += &format!("run {answered}..{end} batch={}\n", 2 * at + 1);
        }
        calls + &runs
    }

    #[test]
    fn every_prompt_of_a_conversation_begins_anew() {
        let anew = requests(&[(0, 100), (0, 150), (0, 200), (0, 250)]);
        let reused = requests(&[(0, 100), (101, 49), (151, 49), (201, 49)]);
        // Of the last prompt, 201 of 250 tokens were there.
        let found = check(RULE, &anew, 1000 * 201 / 250, &reused);
        assert_eq!(
            found.what,
            What::PromptAgain(PromptAgain {
                requests: 1,
                tokens: 201,
                of_tokens: 250,
                longest: (6000, 7000)
            })
        );
        // A benchmark that goes on with longer prompts, and one that repeats the same.
        check(RULE, &anew, 1000 * 201 / 250, &anew.replace("removed 0 0", "cleared"));
        let same = requests(&[(0, 100); 4]);
        check(RULE, &anew, 1000 * 201 / 250, &same);
    }

    /// Some of them are longer than the one before.
    #[test]
    fn questions_that_have_nothing_to_do_with_each_other() {
        let others = requests(&[(0, 100), (0, 150), (1, 220), (0, 70), (0, 90), (1, 300), (0, 40)]);
        let two = requests(&[(0, 100), (0, 150), (0, 200)]);
        let anew = requests(&[(0, 100), (0, 150), (0, 200), (0, 250)]);
        check(RULE, &anew, 1000 * 201 / 250, &others);
        check(RULE, &anew, 1000 * 201 / 250, &two);
    }

    /// Two users of a server, each with a slot, who ask in turn: what one had tells nothing of the other.
    #[test]
    fn prompts_of_other_slots_are_not_processed_again() {
        let anew = requests(&[(0, 100), (0, 150), (0, 200), (0, 250)]);
        let in_turns = |anew: &str| {
            let mut slot = 0;
            let line = |line: &str| {
                slot = if line.starts_with("change") { 1 - slot } else { slot };
                let own = format!(" {slot}:");
                line.replace(" 0:", &own).replace("removed 0", &format!("removed {slot}")) + "\n"
            };
            anew.lines().map(line).collect::<String>()
        };
        check(RULE, &anew, 1000 * 201 / 250, &in_turns(&anew));
    }
}
