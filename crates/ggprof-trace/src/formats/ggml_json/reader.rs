//! Streams a profile into a trace, and continues after anything that it cannot read.

use super::fast_record::{self, KnownDescriptions};
use super::header::{self, Additions, BackendEntry};
use super::record::{self, Happening};
use super::scan::{self, Frame};
use super::window::Window;
use crate::formats::ReadError;
use crate::graph_runs;
use crate::model::{GraphRunId, LossKind, NewInStretch, NodeId, Stretch, Trace};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::Read;

/// Events a trace can hold: their numbers have 32 bits, one of which means "none".
const MOST_EVENTS: u32 = u32::MAX - 1;

/// Events that are handed over to the trace at once.
const MOST_TAKEN: usize = 1024;

/// Bytes the short way for records looks ahead; longer records go the long way.
const SHORT_RECORD: usize = 8 * 1024;

/// Reads a profile. An error means that there is nothing to report about; a trace may still
/// have losses.
pub fn read(mut input: impl Read) -> Result<Trace, ReadError> {
    read_any(&mut input)
}

/// One for all kinds of inputs: what parses JSON is large, and the window asks for large pieces.
fn read_any(input: &mut dyn Read) -> Result<Trace, ReadError> {
    let mut reader = Reader {
        window: Window::new(input),
        trace: Trace { writer: "ggml".to_owned(), ..Trace::default() },
        known: KnownDescriptions::default(),
        announced: None,
        additions: None,
        found_records: false,
        taken: Vec::new(),
        stretch: None,
    };
    reader.file()?;
    Ok(reader.finish())
}

struct Reader<'i> {
    window: Window<&'i mut dyn Read>,
    trace: Trace,
    known: KnownDescriptions,
    /// What `total_records` says.
    announced: Option<u64>,
    /// Kept until the end: they refer to records, which may come after them.
    additions: Option<Additions>,
    found_records: bool,
    /// Events on their way into the trace, and what they have in common.
    taken: Vec<NewInStretch>,
    stretch: Option<Stretch>,
}

/// Whether reading can continue after a part of the file.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    /// The input ended.
    Ended,
    /// What follows is not JSON.
    Lost,
}

impl Reader<'_> {
    fn file(&mut self) -> Result<(), ReadError> {
        self.window.want(3)?;
        if self.window.in_memory().starts_with("\u{feff}".as_bytes()) {
            self.window.advance(3);
        }
        let flow = match scan::next_byte(&mut self.window)? {
            None => return Err(ReadError::Empty),
            Some(b'{') => {
                self.window.advance(1);
                self.members()?
            }
            Some(_) => Flow::Lost,
        };
        if !self.found_records {
            return Err(ReadError::NotAProfile(match flow {
                Flow::On => "it is JSON, but without a list \"records\"".to_owned(),
                Flow::Ended => "it ends before its list \"records\"".to_owned(),
                Flow::Lost => self.not_json(),
            }));
        }
        if flow == Flow::Ended {
            let position = self.window.position();
            self.trace.lose(LossKind::Truncated, || format!("it ends at byte {position}"));
        } else if scan::next_byte(&mut self.window)?.is_some() {
            let what = self.not_json();
            self.trace.lose(LossKind::DamagedHeader, || what);
        }
        Ok(())
    }

    /// The members of the outermost object, in any order.
    fn members(&mut self) -> Result<Flow, ReadError> {
        loop {
            let flow = match scan::next_byte(&mut self.window)? {
                None => Flow::Ended,
                Some(b'}') => {
                    self.window.advance(1);
                    return Ok(Flow::On);
                }
                Some(b',') => {
                    self.window.advance(1);
                    Flow::On
                }
                Some(b'"') => self.member()?,
                Some(_) => Flow::Lost,
            };
            if flow != Flow::On {
                return Ok(flow);
            }
        }
    }

    fn member(&mut self) -> Result<Flow, ReadError> {
        let Some(key) = self.value::<String>()? else {
            return Ok(if self.at_end() { Flow::Ended } else { Flow::Lost });
        };
        match scan::next_byte(&mut self.window)? {
            None => return Ok(Flow::Ended),
            Some(b':') => self.window.advance(1),
            Some(_) => return Ok(Flow::Lost),
        }
        let Some(first) = scan::next_byte(&mut self.window)? else { return Ok(Flow::Ended) };
        match key.as_str() {
            "version" => self.trace.version = self.value()?,
            "total_records" => self.announced = self.value()?,
            "profiler" => {
                if let Some(writer) = self.value()? {
                    self.trace.writer = writer;
                }
            }
            "backends" => {
                if let Some(entries) = self.value::<Vec<BackendEntry>>()? {
                    header::take_backends(entries, &mut self.trace);
                }
            }
            "ggprof" => return self.additions(),
            "records" if first == b'[' => {
                self.window.advance(1);
                self.found_records = true;
                return self.records();
            }
            _ => {
                scan::skip(&mut self.window)?;
            }
        }
        Ok(if self.at_end() { Flow::Ended } else { Flow::On })
    }

    fn at_end(&self) -> bool {
        self.window.has_ended() && self.window.in_memory().is_empty()
    }

    /// A small value of the header; `None`, and a loss, if it is not what it should be.
    fn value<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ReadError> {
        match scan::frame(&mut self.window)? {
            Frame::Whole(length) => {
                let json = &self.window.in_memory()[..length];
                let parsed =
                    serde_json::from_slice(json).or_else(|_| serde_json::from_slice(&repair(json)));
                let position = self.window.position();
                self.window.advance(length);
                match parsed {
                    Ok(value) => Ok(Some(value)),
                    Err(error) => {
                        self.trace.lose(LossKind::DamagedHeader, || {
                            format!("the value at byte {position} was ignored: {error}")
                        });
                        Ok(None)
                    }
                }
            }
            Frame::Cut => {
                let rest = self.window.in_memory().len();
                self.window.advance(rest);
                Ok(None)
            }
            Frame::Broken(_) | Frame::TooLong => {
                let position = self.window.position();
                self.trace.lose(LossKind::DamagedHeader, || {
                    format!("the value at byte {position} was ignored: it has no proper end")
                });
                scan::skip(&mut self.window)?;
                Ok(None)
            }
        }
    }

    /// ggprof's own object, which grows with the recording and may exceed the window.
    fn additions(&mut self) -> Result<Flow, ReadError> {
        let position = self.window.position();
        let mut json = serde_json::Deserializer::from_reader(&mut self.window);
        match Additions::deserialize(&mut json) {
            Ok(additions) => {
                self.additions = Some(additions);
                Ok(Flow::On)
            }
            Err(error) if error.is_io() => Err(ReadError::Io(error.into())),
            Err(error) if error.is_eof() => Ok(Flow::Ended),
            Err(error) => {
                self.trace.lose(LossKind::DamagedHeader, || {
                    format!("the \"ggprof\" part at byte {position} was ignored: {error}")
                });
                Ok(Flow::Lost)
            }
        }
    }

    fn records(&mut self) -> Result<Flow, ReadError> {
        loop {
            match scan::next_byte(&mut self.window)? {
                None => return Ok(Flow::Ended),
                Some(b']') => {
                    self.window.advance(1);
                    return Ok(Flow::On);
                }
                Some(b',') => self.window.advance(1),
                Some(_) => {
                    if self.record()? == Flow::Ended {
                        return Ok(Flow::Ended);
                    }
                }
            }
        }
    }

    fn record(&mut self) -> Result<Flow, ReadError> {
        self.window.want(SHORT_RECORD)?;
        if let Some(split) = fast_record::split(self.window.in_memory())
            && let Some((node, length)) = self.known.find(&split)
        {
            let happening = split.happening;
            self.window.advance(length);
            self.keep(happening, node)?;
            return Ok(Flow::On);
        }
        match scan::frame(&mut self.window)? {
            // A bracket that closes what was never opened.
            Frame::Whole(0) => self.unframed("no record begins there"),
            Frame::Whole(length) => {
                self.whole_record(length)?;
                Ok(Flow::On)
            }
            Frame::Cut => {
                let rest = self.window.in_memory().len();
                self.window.advance(rest);
                Ok(Flow::Ended)
            }
            Frame::Broken(_) => self.unframed("a quotation mark in it is not escaped"),
            Frame::TooLong => self.unframed("it is longer than any record can be"),
        }
    }

    fn whole_record(&mut self, length: usize) -> Result<(), ReadError> {
        let json = &self.window.in_memory()[..length];
        let parsed = record::parse(json, &mut self.trace).or_else(|reason| {
            let repaired = repair(json);
            if repaired == json {
                return Err(reason);
            }
            let parsed = record::parse(&repaired, &mut self.trace)?;
            let position = self.window.position();
            self.trace.lose(LossKind::RepairedText, || format!("the record at byte {position}"));
            Ok(parsed)
        });
        match parsed {
            Ok((happening, node)) => {
                // Equal facts prove that none of them stands in the description.
                if let Some(split) = fast_record::split(json)
                    && split.length() == Some(length)
                    && split.happening == happening
                {
                    self.known.remember(&split, node);
                }
                self.window.advance(length);
                self.keep(happening, node)?;
            }
            Err(reason) => {
                self.lose_record(&reason);
                self.window.advance(length);
            }
        }
        Ok(())
    }

    fn unframed(&mut self, reason: &str) -> Result<Flow, ReadError> {
        self.lose_record(reason);
        Ok(if scan::resynchronise(&mut self.window)? { Flow::On } else { Flow::Ended })
    }

    fn keep(&mut self, happening: Happening, node: NodeId) -> Result<(), ReadError> {
        if (self.trace.events.len() + self.taken.len()) as u64 >= u64::from(MOST_EVENTS) {
            return Err(ReadError::TooManyEvents(MOST_EVENTS));
        }
        let Some(backend) = self.trace.backend_with_id(happening.backend_id) else {
            self.lose_record("the file names more backends than can be told apart");
            return Ok(());
        };
        let source_backend =
            happening.source_backend_id.and_then(|id| self.trace.backend_with_id(id));
        let stretch = Stretch {
            kind: happening.kind,
            backend,
            source_backend,
            split: happening.split_id,
            graph_run: happening.graph_run.map(GraphRunId),
        };
        if self.stretch != Some(stretch) || self.taken.len() >= MOST_TAKEN {
            self.hand_over();
            self.stretch = Some(stretch);
        }
        self.taken.push(NewInStretch {
            node,
            start_ns: happening.start_ns,
            duration_ns: happening.duration_ns,
            bytes: happening.bytes,
            measured: happening.measured,
            threads: happening.threads,
        });
        Ok(())
    }

    /// Neighbouring events that have much in common go into the trace together.
    fn hand_over(&mut self) {
        if let Some(stretch) = self.stretch.take() {
            self.trace.events.extend(stretch, &self.taken);
            self.taken.clear();
        }
    }

    fn lose_record(&mut self, reason: &str) {
        let position = self.window.position();
        self.trace.lose(LossKind::DamagedRecord, || format!("at byte {position}, {reason}"));
    }

    /// What stands at the current position, in words.
    fn not_json(&self) -> String {
        let position = self.window.position();
        let start = &self.window.in_memory()[..self.window.in_memory().len().min(16)];
        let start = String::from_utf8_lossy(start).escape_debug().to_string();
        format!("at byte {position} stands `{start}`, which does not belong there")
    }

    fn finish(mut self) -> Trace {
        self.hand_over();
        if let Some(additions) = self.additions.take() {
            header::take_additions(additions, &mut self.trace);
        }
        if let Some(announced) = self.announced
            && self.trace.losses.is_empty()
            && announced != self.trace.events.len() as u64
        {
            let found = self.trace.events.len();
            self.trace.lose(LossKind::DamagedHeader, || {
                format!("it announces {announced} records and has {found}")
            });
        }
        graph_runs::complete(&mut self.trace);
        self.trace
    }
}

/// Replaces bytes that are not UTF-8 and escapes raw control characters in strings, which
/// ggml's writer lets through when a tensor's name holds them.
fn repair(json: &[u8]) -> Vec<u8> {
    let mut repaired = Vec::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for byte in String::from_utf8_lossy(json).bytes() {
        match byte {
            0..0x20 if in_string => {
                repaired.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            }
            _ => repaired.push(byte),
        }
        in_string ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
    }
    repaired
}
