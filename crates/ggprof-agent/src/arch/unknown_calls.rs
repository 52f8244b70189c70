//! Whether callers of a function must expect that it changes every register that a call may change.
//!
//! A compiler that sees a function lets its callers keep values in registers that the function does not touch,
//! whatever the rules for calls say. It looks at what the function calls as well, as far as it sees that
//! (gcc's `-fipa-ra`). So a hook may change those registers only if the function, or one that it calls,
//! calls code that no compiler can see: what a pointer or another library's table leads to.

use std::collections::BTreeSet;
use std::ops::Range;

use super::step;

/// Where control goes from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    On,
    /// On, or there.
    Perhaps(usize),
    Jump(usize),
    Call(usize),
    /// A call of code that no compiler can see.
    CallUnknown,
    /// Back, or somewhere else in the function.
    Elsewhere,
}

/// Most functions call something of the sort among their first hundred instructions.
const MOST_STEPS: usize = 20_000;

/// `code` is the whole function; `code_at` gives other code from an address on.
pub(crate) fn calls_unknown<'c>(
    (code, function): (&[u8], Range<usize>),
    code_at: impl Fn(usize) -> Option<&'c [u8]>,
) -> bool {
    // All of its instructions are its own, even if only a table leads to them.
    let mut open = Vec::new();
    let mut at = function.start;
    while let Some((length, step)) = step(&code[at - function.start..], at) {
        match step {
            Step::CallUnknown => return true,
            Step::Call(to) | Step::Jump(to) | Step::Perhaps(to) => open.push(to),
            Step::On | Step::Elsewhere => {}
        }
        at += length;
    }
    let mut seen = BTreeSet::new();
    while let Some(mut at) = open.pop() {
        while !function.contains(&at) && seen.insert(at) && seen.len() < MOST_STEPS {
            let Some((length, step)) = code_at(at).and_then(|code| step(code, at)) else { break };
            let next = at + length;
            match step {
                Step::On => at = next,
                Step::Perhaps(to) => {
                    open.push(to);
                    at = next;
                }
                Step::Jump(to) => at = to,
                // First what is called: if that never returns, what comes next is another function's.
                Step::Call(to) => {
                    open.push(next);
                    at = to;
                }
                Step::CallUnknown => return true,
                Step::Elsewhere => break,
            }
        }
    }
    false
}
