//! Packets of a trace, one after the other, and what they have in common: the sequence they belong to,
//! their clock, and the strings that are described once and then named by a number.

use super::NOWHERE;
use super::numbers::{
    annotation, clock, defaults, descriptor, event, interned, packet, snapshot, sync, trace,
};
use crate::formats::protobuf::Message;
use hashbrown::{Equivalent, HashMap};
use std::io::{self, Write};

/// The host's sequence. Other machines have theirs behind it, because what one describes, others do not know.
const SEQUENCE: u64 = 1;
/// Whether a packet begins anew, or needs the strings that others described.
const BEGINS: u64 = 1;
const CONTINUES: u64 = 2;
/// Perfetto's numbers of clocks.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The kinds of strings that are described once; each has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    EventName,
    Category,
    AnnotationName,
    AnnotationText,
    /// Queues and kernels of devices.
    Specification,
}

impl Kind {
    fn field(self) -> u32 {
        match self {
            Self::EventName => interned::EVENT_NAMES,
            Self::Category => interned::EVENT_CATEGORIES,
            Self::AnnotationName => interned::DEBUG_ANNOTATION_NAMES,
            Self::AnnotationText => interned::DEBUG_ANNOTATION_STRING_VALUES,
            Self::Specification => interned::GPU_SPECIFICATIONS,
        }
    }
}

/// A string that is looked for, without a copy of it.
#[derive(Hash)]
struct Looked<'a>(Kind, &'a str);

impl Equivalent<(Kind, String)> for Looked<'_> {
    fn equivalent(&self, (kind, text): &(Kind, String)) -> bool {
        self.0 == *kind && self.1 == text
    }
}

pub(super) struct Packets<W> {
    out: W,
    /// The machine that packets are of, unless it is the host.
    machine: Option<u64>,
    numbers: HashMap<(Kind, String), u64>,
    /// Descriptions that no packet has had yet.
    new: Message,
    is_begun: bool,
    packet: Message,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W, machine: Option<u64>) -> Self {
        let (new, packet) = (Message::default(), Message::default());
        Self { out, machine, numbers: HashMap::new(), new, is_begun: false, packet }
    }

    /// The number of a string, which the next packet describes if none did before.
    pub(super) fn intern(&mut self, kind: Kind, text: &str) -> u64 {
        self.intern_with(kind, text, |_| ())
    }

    /// The same with further fields of the description.
    pub(super) fn intern_with(
        &mut self,
        kind: Kind,
        text: &str,
        more: impl FnOnce(&mut Message),
    ) -> u64 {
        if let Some(&number) = self.numbers.get(&Looked(kind, text)) {
            return number;
        }
        let next = self.numbers.len() as u64 + 1;
        self.numbers.insert((kind, text.to_owned()), next);
        self.describe(kind.field(), next, |description| {
            description.text(interned::NAME, text);
            more(description);
        });
        next
    }

    /// Describes something whose number is known.
    pub(super) fn describe(&mut self, field: u32, number: u64, write: impl FnOnce(&mut Message)) {
        self.new.with(field, |description| {
            description.number(interned::IID, number);
            write(description);
        });
    }

    pub(super) fn write(&mut self, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.number(packet::SEQUENCE_ID, SEQUENCE + self.machine.unwrap_or(0));
        if let Some(machine) = self.machine {
            self.packet.number(packet::MACHINE_ID, machine);
        }
        if !self.is_begun {
            self.packet.with(packet::DEFAULTS, |it| {
                it.number(defaults::TIMESTAMP_CLOCK_ID, MONOTONIC);
            });
        }
        self.packet.number(packet::SEQUENCE_FLAGS, if self.is_begun { CONTINUES } else { BEGINS });
        self.is_begun = true;
        if !self.new.bytes().is_empty() {
            self.packet.message(packet::INTERNED_DATA, &self.new);
            self.new.clear();
        }
        write(&mut self.packet);
        let mut whole = Message::default();
        whole.message(trace::PACKET, &self.packet);
        self.out.write_all(whole.bytes())
    }

    pub(super) fn write_at(
        &mut self,
        time_ns: u64,
        write: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.write(|it| {
            it.number(packet::TIMESTAMP, time_ns);
            write(it);
        })
    }

    /// The recording's clock, and the time of day where that is known.
    pub(super) fn clocks(&mut self, at_ns: u64, unix_ns: Option<u64>) -> io::Result<()> {
        self.write(|it| {
            it.with(packet::CLOCK_SNAPSHOT, |it| {
                let clocks = [Some((MONOTONIC, at_ns)), unix_ns.map(|ns| (REALTIME, ns))];
                clocks.into_iter().flatten().for_each(|clock| reading(it, clock));
                it.number(snapshot::PRIMARY_TRACE_CLOCK, MONOTONIC);
            });
        })
    }

    /// A machine's clock and the host's: the same at the same time. Two machines read their clocks in turns,
    /// twice, and Perfetto estimates what is between them; here, all readings are of one moment. It tells
    /// by BOOTTIME which of them belong together, and takes 0 for a clock that was not read.
    pub(super) fn agreeing_clocks(&mut self, at_ns: u64) -> io::Result<()> {
        let mut clocks = Message::default();
        [MONOTONIC, BOOTTIME].iter().for_each(|&id| reading(&mut clocks, (id, at_ns.max(1))));
        let mut both = Message::default();
        both.message(sync::CLIENT_CLOCKS, &clocks).message(sync::HOST_CLOCKS, &clocks);
        self.write(|it| {
            it.with(packet::REMOTE_CLOCK_SYNC, |it| {
                it.message(sync::SYNCED_CLOCKS, &both).message(sync::SYNCED_CLOCKS, &both);
            });
        })
    }

    /// A track below another.
    pub(super) fn track(
        &mut self,
        uuid: u64,
        parent: u64,
        name: &str,
        more: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.write(|it| {
            it.with(packet::TRACK_DESCRIPTOR, |it| {
                it.number(descriptor::UUID, uuid);
                if parent != NOWHERE {
                    it.number(descriptor::PARENT_UUID, parent);
                }
                if !name.is_empty() {
                    it.text(descriptor::NAME, name);
                }
                // As they are described, not by their names.
                it.number(descriptor::SIBLING_ORDER_RANK, uuid);
                it.number(descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
                more(it);
            });
        })
    }

    /// A slice: where it begins, with all that is known of it, and where it ends.
    pub(super) fn slice(
        &mut self,
        track: u64,
        (start_ns, end_ns): (u64, u64),
        write: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.event(track, start_ns, event::SLICE_BEGIN, write)?;
        self.event(track, end_ns, event::SLICE_END, |_| ())
    }

    pub(super) fn event(
        &mut self,
        track: u64,
        time_ns: u64,
        kind: u64,
        write: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.write_at(time_ns, |it| {
            it.with(packet::TRACK_EVENT, |it| {
                it.number(event::TYPE, kind).number(event::TRACK_UUID, track);
                write(it);
            });
        })
    }

    /// An annotation of an event, to be appended to it.
    pub(super) fn text_annotation(&mut self, to: &mut Message, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let name = self.intern(Kind::AnnotationName, name);
        let text = self.intern(Kind::AnnotationText, text);
        to.with(event::DEBUG_ANNOTATIONS, |it| {
            it.number(annotation::NAME_IID, name).number(annotation::STRING_VALUE_IID, text);
        });
    }
}

fn reading(to: &mut Message, (id, time): (u64, u64)) {
    to.with(snapshot::CLOCKS, |it| {
        it.number(clock::ID, id).number(clock::TIMESTAMP, time);
    });
}

/// A number beside an event, under a name that is described.
pub(super) fn number_annotation(to: &mut Message, name: u64, value: u64) {
    to.with(event::DEBUG_ANNOTATIONS, |it| {
        it.number(annotation::NAME_IID, name).number(annotation::UINT_VALUE, value);
    });
}
