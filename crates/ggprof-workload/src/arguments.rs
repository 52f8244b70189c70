//! The command line.

use std::path::PathBuf;

/// What to run.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// A directory of libggml*.so, or the libraries themselves in order.
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) graphs: usize,
    pub(crate) threads: i32,
    pub(crate) layers: usize,
    pub(crate) embd: i64,
    pub(crate) prompt: i64,
    pub(crate) experts: i64,
    /// Schedulers computing at the same time, each on a thread of its own.
    pub(crate) contexts: usize,
    /// Put the weights of every second layer on the first other device.
    pub(crate) split: bool,
    /// Put an op into each layer that devices do not have.
    pub(crate) unsupported: bool,
    /// Let the devices take their weights from the host themselves.
    pub(crate) upload: bool,
    /// Open the libraries with RTLD_LOCAL, as plugins are.
    pub(crate) local: bool,
    pub(crate) announce: bool,
    /// Compute with numbers, and print a sum of what came out.
    pub(crate) result: bool,
    /// Instead of `graphs`: until the input ends. Each token must come out like the first.
    pub(crate) until_told: bool,
}

const USAGE: &str = "usage: ggprof-workload DIRECTORY|LIBRARY… [--graphs N] [--threads N] \
[--layers N] [--embd N] [--prompt N] [--experts N] [--contexts N] [--split] \
[--unsupported] [--upload] \
[--local] [--announce] [--result] [--until-told]";

impl Arguments {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut parsed = Arguments {
            libraries: Vec::new(),
            graphs: 10,
            threads: 2,
            layers: 4,
            embd: 256,
            prompt: 32,
            experts: 0,
            contexts: 1,
            split: false,
            unsupported: false,
            upload: false,
            local: false,
            announce: false,
            result: false,
            until_told: false,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--graphs" => parsed.graphs = number(&word, words.next())?,
                "--threads" => parsed.threads = number(&word, words.next())?,
                "--layers" => parsed.layers = number(&word, words.next())?,
                "--embd" => parsed.embd = number(&word, words.next())?,
                "--prompt" => parsed.prompt = number(&word, words.next())?,
                "--experts" => parsed.experts = number(&word, words.next())?,
                "--contexts" => parsed.contexts = number(&word, words.next())?,
                "--split" => parsed.split = true,
                "--unsupported" => parsed.unsupported = true,
                "--upload" => parsed.upload = true,
                "--local" => parsed.local = true,
                "--announce" => parsed.announce = true,
                "--result" => parsed.result = true,
                "--until-told" => parsed.until_told = true,
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}\n{USAGE}"));
                }
                _ => parsed.libraries.push(word.into()),
            }
        }
        if parsed.libraries.is_empty() {
            return Err(USAGE.to_owned());
        }
        if parsed.embd % 64 != 0 || parsed.embd <= 0 {
            return Err("--embd must be a multiple of 64".to_owned());
        }
        Ok(parsed)
    }
}

fn number<T: std::str::FromStr>(option: &str, word: Option<String>) -> Result<T, String> {
    let word = word.ok_or_else(|| format!("{option} needs a number"))?;
    word.parse().map_err(|_| format!("{option} {word}: not a number"))
}
