//! The format of pprof (`profile.proto`), which Pyroscope, Parca and `go tool pprof` open: how much of
//! what each stack comes to. What the stacks and the values are, the caller says.

use super::protobuf::Message;
use hashbrown::HashMap;
use std::io::{self, Write};

/// What is counted, and in which unit: `("time", "nanoseconds")`.
pub type Dimension = (&'static str, &'static str);

#[derive(Debug, Default)]
pub struct Profile {
    /// Whose it is.
    pub program: String,
    pub dimensions: Vec<Dimension>,
    /// Which of them a viewer shows first.
    pub first: &'static str,
    pub samples: Vec<Sample>,
    /// Nanoseconds since 1970; 0 if it is not known.
    pub begin_unix_ns: u64,
    pub duration_ns: u64,
    /// What the reader should know.
    pub comments: Vec<String>,
}

#[derive(Debug)]
pub struct Sample {
    /// The widest first.
    pub stack: Vec<String>,
    /// One for each dimension.
    pub values: Vec<u64>,
    /// By which samples can be chosen.
    pub labels: Vec<(&'static str, String)>,
}

/// Numbers of the fields in the published schema.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

mod value_type {
    pub(super) const TYPE: u32 = 1;
    pub(super) const UNIT: u32 = 2;
}

mod sample {
    pub(super) const LOCATION_ID: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const LABEL: u32 = 3;
}

mod label {
    pub(super) const KEY: u32 = 1;
    pub(super) const STR: u32 = 2;
}

/// A file that frames come from.
mod mapping {
    pub(super) const ID: u32 = 1;
    pub(super) const FILENAME: u32 = 5;
    pub(super) const HAS_FUNCTIONS: u32 = 7;
}

mod location {
    pub(super) const ID: u32 = 1;
    pub(super) const MAPPING_ID: u32 = 2;
    pub(super) const LINE: u32 = 4;
}

mod line {
    pub(super) const FUNCTION_ID: u32 = 1;
}

mod function {
    pub(super) const ID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const SYSTEM_NAME: u32 = 3;
}

/// The number of the only file.
const PROGRAM: u64 = 1;

/// Writes `profile` to `out`. Compressed with gzip, it is what is usually in files `.pb.gz`.
pub fn write(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let mut tables = Tables::default();
    // The first string is the empty one.
    tables.string("");
    let mut message = Message::default();
    for dimension in &profile.dimensions {
        message.message(profile::SAMPLE_TYPE, &tables.value_type(*dimension));
    }
    for sample in &profile.samples {
        message.message(profile::SAMPLE, &tables.sample(sample));
    }
    let program = tables.string(&profile.program);
    message.with(profile::MAPPING, |it| {
        it.number(mapping::ID, PROGRAM).number(mapping::FILENAME, program);
        it.number(mapping::HAS_FUNCTIONS, 1);
    });
    message.number(profile::TIME_NANOS, profile.begin_unix_ns);
    message.number(profile::DURATION_NANOS, profile.duration_ns);
    message.message(profile::PERIOD_TYPE, &tables.value_type(("time", "nanoseconds")));
    message.number(profile::PERIOD, 1);
    for comment in &profile.comments {
        message.number(profile::COMMENT, tables.string(comment));
    }
    message.number(profile::DEFAULT_SAMPLE_TYPE, tables.string(profile.first));
    tables.write(&mut message);
    out.write_all(message.bytes())
}

/// What samples refer to by number.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_numbers: HashMap<String, u64>,
    /// By the number of its name: a frame is a place without an address.
    frames: HashMap<u64, u64>,
    frame_names: Vec<u64>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.string_numbers.get(text) {
            return number;
        }
        let number = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_numbers.insert(text.to_owned(), number);
        number
    }

    /// Numbers of frames begin with 1.
    fn frame(&mut self, name: &str) -> u64 {
        let name = self.string(name);
        *self.frames.entry(name).or_insert_with(|| {
            self.frame_names.push(name);
            self.frame_names.len() as u64
        })
    }

    fn value_type(&mut self, (what, unit): Dimension) -> Message {
        let (what, unit) = (self.string(what), self.string(unit));
        let mut message = Message::default();
        message.number(value_type::TYPE, what).number(value_type::UNIT, unit);
        message
    }

    fn sample(&mut self, sample: &Sample) -> Message {
        let mut message = Message::default();
        // The narrowest comes first.
        let frames: Vec<u64> = sample.stack.iter().rev().map(|name| self.frame(name)).collect();
        message.packed(sample::LOCATION_ID, &frames).packed(sample::VALUE, &sample.values);
        for (key, text) in &sample.labels {
            let (key, text) = (self.string(key), self.string(text));
            message
                .with(sample::LABEL, |it| _ = it.number(label::KEY, key).number(label::STR, text));
        }
        message
    }

    fn write(&self, message: &mut Message) {
        for (number, &name) in (1..).zip(&self.frame_names) {
            message.with(profile::LOCATION, |it| {
                it.number(location::ID, number).number(location::MAPPING_ID, PROGRAM);
                it.with(location::LINE, |it| _ = it.number(line::FUNCTION_ID, number));
            });
            message.with(profile::FUNCTION, |it| {
                it.number(function::ID, number).number(function::NAME, name);
                it.number(function::SYSTEM_NAME, name);
            });
        }
        self.strings.iter().for_each(|text| _ = message.text(profile::STRING_TABLE, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::protobuf::read;

    #[test]
    fn samples_and_what_they_refer_to() {
        let sample = |stack: &[&str], values: [u64; 2], backend: &str| Sample {
            stack: stack.iter().map(ToString::to_string).collect(),
            values: values.to_vec(),
            labels: vec![("backend", backend.to_owned())],
        };
        let profile = Profile {
            program: "llama-bench".to_owned(),
            dimensions: vec![("time", "nanoseconds"), ("bytes", "bytes")],
            first: "time",
            samples: vec![
                sample(&["tg1", "MUL_MAT"], [300, 7], "CPU"),
                sample(&["tg1", "ADD"], [0, 0], "CPU"),
            ],
            begin_unix_ns: 5,
            duration_ns: 6,
            comments: Vec::new(),
        };
        let mut bytes = Vec::new();
        write(&profile, &mut bytes).unwrap();
        let strings = read::messages(&bytes, profile::STRING_TABLE);
        let string = |number: u64| std::str::from_utf8(strings[number as usize]).unwrap();
        assert_eq!(string(0), "");
        let names = read::messages(&bytes, profile::FUNCTION);
        let frame = |number: u64| {
            let frame = names[number as usize - 1];
            assert_eq!(read::number(frame, function::ID), Some(number));
            string(read::number(frame, function::NAME).unwrap())
        };
        let found: Vec<(Vec<&str>, Vec<u64>)> = read::messages(&bytes, profile::SAMPLE)
            .into_iter()
            .map(|sample| {
                let frames = read::packed(read::messages(sample, sample::LOCATION_ID)[0]);
                let values = read::packed(read::messages(sample, sample::VALUE)[0]);
                (frames.into_iter().map(frame).collect(), values)
            })
            .collect();
        let expected = [(vec!["MUL_MAT", "tg1"], vec![300, 7]), (vec!["ADD", "tg1"], vec![0, 0])];
        assert_eq!(found, expected);
        assert_eq!(read::number(&bytes, profile::DURATION_NANOS), Some(6));
        assert_eq!(string(read::number(&bytes, profile::DEFAULT_SAMPLE_TYPE).unwrap()), "time");
    }
}
