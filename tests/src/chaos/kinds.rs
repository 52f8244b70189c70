//! The table of hazards: how each is drawn, which programs it is for, and what it excuses. All
//! else must be as without the agent.

use rustix::process::Signal;

use super::disturbance::{Disturbance, To};
use super::excuses::{ASKED, END, Excuses, NO_RECORDING, NOTHING};
use super::hazards::{Effect, Kind};
use super::random::Random;

const fn kind(name: &'static str, excuses: Excuses, draw: fn(&mut Random) -> Vec<Effect>) -> Kind {
    Kind { name, draw, fits: |_| true, excuses }
}

pub(super) const ALL: &[Kind] = &[
    kind("stopped", NOTHING, |random| {
        let (times, held_ms) = (random.between(1..=20), random.of_any_size(1..=128));
        disturbed(Disturbance::Stops { times, held_ms })
    }),
    kind("killed", END, |random| signalled(To::Program, Signal::KILL, random)),
    kind("terminated", END, |random| {
        let signal = *random.one_of(&[Signal::TERM, Signal::INT, Signal::HUP]);
        signalled(To::Launcher, signal, random)
    }),
    kind("launcher killed", Excuses { launcher_end: true, ..NO_RECORDING }, |random| {
        signalled(To::LauncherAlone, Signal::KILL, random)
    }),
    // Node.js has handlers of its own.
    Kind { fits: |program| !program.is_node, ..kind("signals", NOTHING, signals) },
    kind("timer", NOTHING, |random| {
        unrest(format!("timer={}", random.of_any_size(256..=16_384)), random)
    }),
    kind("threads", NOTHING, |random| unrest("threads".to_owned(), random)),
    kind("forks", NOTHING, |random| unrest("forks".to_owned(), random)),
    kind("execs", NOTHING, |random| unrest("execs".to_owned(), random)),
    // Where a thread is always inside the loader, no child of a rehearsal may come to an end.
    kind("opens and closes", Excuses { fewer_records: true, ..NOTHING }, |random| {
        let mut effects = unrest("opens=LIBRARY".to_owned(), random);
        // Without it, ggml ends programs that load it anew where it was before.
        effects.push(Effect::Variable("GGML_NO_BACKTRACE", "1"));
        effects
    }),
    kind("few files", NO_RECORDING, |random| {
        // The launcher has some of its own, and says so where they are too few to start anything.
        match random.is_heads() {
            true => inside(format!("limit=files:{}", random.between(8..=64))),
            false => around(format!("limit=files:{}", random.between(16..=64))),
        }
    }),
    // How much several contexts need depends on whether they happen to be there at once.
    Kind {
        fits: |program| !program.has_contexts,
        ..kind("little memory", NO_RECORDING, |random| {
            vec![Effect::SpareMemory(random.of_any_size(24 << 20..=1 << 30))]
        })
    },
    // Of ggprof's agent alone, from one of its allocations on.
    Kind {
        fits: |program| program.is_quick,
        ..kind("no memory for the agent", NO_RECORDING, |random| {
            let source = "lets_the_agent_go_without.c";
            let from = random.of_any_size(1..=4096);
            vec![Effect::Preloaded { source, before: true }, Effect::Number("LACKS_FROM", from)]
        })
    },
    // The agent creates one, and what is recorded of these programs has room in its first blocks. For a child
    // that computes it would create another. A program that is started to write a profile is ended, too.
    Kind {
        fits: |program| program.is_quick && !program.on_vulkan && !program.has_children,
        ..kind("one file", Excuses { silence: true, ..NO_RECORDING }, |_| {
            vec![Effect::Preloaded { source: "creates_one_file.c", before: true }]
        })
    },
    kind("small files", NO_RECORDING, |random| {
        let bytes = random.of_any_size(16 << 10..=16 << 20);
        somewhere(format!("limit=size:{bytes}"), random)
    }),
    kind("small stack", NOTHING, |random| {
        inside(format!("limit=stack:{}", random.of_any_size(48 << 10..=4 << 20)))
    }),
    kind("full disk", NO_RECORDING, |random| {
        around(format!("full=TEMPORARY:{}", random.of_any_size(8 << 10..=8 << 20)))
    }),
    kind("read-only directory", NO_RECORDING, |random| {
        somewhere("readonly=TEMPORARY".to_owned(), random)
    }),
    kind("noexec directory", NOTHING, |_| around("noexec=TEMPORARY".to_owned())),
    kind("no /proc", NO_RECORDING, |random| somewhere("hidden=/proc".to_owned(), random)),
    kind("no /sys", NOTHING, |random| somewhere("hidden=/sys".to_owned(), random)),
    kind("no new code", NO_RECORDING, |random| somewhere("mdwe".to_owned(), random)),
    kind("refused calls", NO_RECORDING, |random| {
        let calls = ["mprotect", "mapping", "process_vm", "reserving", "new_calls"];
        somewhere(format!("refuse={}", random.one_of(&calls)), random)
    }),
    kind("refused fork", NO_RECORDING, |_| inside("refuse=fork".to_owned())),
    kind("preloaded", NOTHING, |random| {
        let sources =
            ["second_profiler.c", "own_memory.c", "reports_faults.c", "interposes_loader.c"];
        let source = *random.one_of(&sources);
        vec![Effect::Preloaded { source, before: random.is_heads() }]
    }),
    Kind { fits: |program| program.on_vulkan, ..kind("Vulkan layers", NOTHING, vulkan_layers) },
    kind("traced", NOTHING, |random| {
        let (times, every_us) = (random.between(1..=40), random.of_any_size(256..=32_768));
        disturbed(Disturbance::Traced { times, every_us })
    }),
    kind("controlled", ASKED, |random| {
        let (seed, every_ms) = (random.between(0..=u64::MAX >> 1), random.of_any_size(4..=128));
        disturbed(Disturbance::Controlled { seed, every_ms })
    }),
    kind("locale", NOTHING, |random| {
        let (name, value) = *random.one_of(&[
            ("LC_ALL", "tr_TR.UTF-8"),
            ("LC_NUMERIC", "de_DE.UTF-8"),
            ("LANG", "no-such.place@at/all"),
            ("LC_ALL", "C.UTF-8"),
        ]);
        vec![Effect::Variable(name, value)]
    }),
    kind("one core", NOTHING, |random| inside(format!("core={}", random.between(0..=1)))),
    kind("nice", NOTHING, |random| somewhere(format!("nice={}", random.between(1..=19)), random)),
    kind("closed input", NOTHING, |random| somewhere("close=0".to_owned(), random)),
    kind("closed errors", Excuses { silence: true, ..NOTHING }, |random| {
        somewhere("close=2".to_owned(), random)
    }),
    kind("ignored signals", NOTHING, |random| {
        let signals = [Signal::HUP, Signal::INT, Signal::PIPE, Signal::CHILD, Signal::USR1];
        let signal = *random.one_of(&signals);
        let mut effects = somewhere(format!("ignore={}", signal.as_raw()), random);
        // Some programs do not leave it ignored. Then it must not be a matter of luck whether the signal
        // comes before their end.
        let (to, permille) = (To::Program, random.between(0..=550));
        effects.extend(disturbed(Disturbance::Signal { to, signal, permille }));
        effects
    }),
    kind("by variable", NOTHING, |_| vec![Effect::ByVariable]),
    kind("options", ASKED, |random| {
        let options: [&'static [&'static str]; 9] = [
            &["--threads"],
            &["--serialize"],
            &["--max-size", "5MB"],
            &["--graphs", "5..20"],
            &["--start-after", "100ms"],
            &["--duration", "50ms"],
            &["--vulkan", "group"],
            &["--vulkan", "pair"],
            &["--vulkan", "off"],
        ];
        vec![Effect::Option(random.one_of::<&'static [&'static str]>(&options))]
    }),
];

fn inside(word: String) -> Vec<Effect> {
    vec![Effect::Inside(word)]
}

fn around(word: String) -> Vec<Effect> {
    vec![Effect::Around(word)]
}

fn somewhere(word: String, random: &mut Random) -> Vec<Effect> {
    if random.is_heads() { inside(word) } else { around(word) }
}

fn disturbed(disturbance: Disturbance) -> Vec<Effect> {
    vec![Effect::Disturbance(disturbance)]
}

fn signalled(to: To, signal: Signal, random: &mut Random) -> Vec<Effect> {
    disturbed(Disturbance::Signal { to, signal, permille: random.between(0..=1100) })
}

fn unrest(what: String, random: &mut Random) -> Vec<Effect> {
    vec![Effect::Unrest { what, every_us: random.of_any_size(256..=16_384) }]
}

/// Signals that end a program unless it handles them, or are of no interest to it.
fn signals(random: &mut Random) -> Vec<Effect> {
    let signals = [Signal::USR1, Signal::USR2, Signal::CHILD, Signal::WINCH, Signal::IO];
    let signal = *random.one_of(&signals);
    let mut effects = unrest(format!("handles={}", signal.as_raw()), random);
    let every_us = random.of_any_size(128..=16_384);
    effects.push(Effect::Disturbance(Disturbance::Storm { signal, every_us }));
    effects
}

fn vulkan_layers(random: &mut Random) -> Vec<Effect> {
    let (name, value) = *random.one_of(&[
        ("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation"),
        ("VK_INSTANCE_LAYERS", "VK_LAYER_MESA_overlay:VK_LAYER_KHRONOS_validation"),
        ("VK_INSTANCE_LAYERS", "VK_LAYER_NONE_such"),
        ("NODEVICE_SELECT", "1"),
    ]);
    vec![Effect::Variable(name, value)]
}
