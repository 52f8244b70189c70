//! Records as C programs get them; `ggml-profiler.h` has the same struct.

use ggprof_trace::{Event, Source, StringId, Trace};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};

const MAX_NAME: usize = 64;
const MAX_SRC: usize = 10;

#[repr(C)]
#[derive(Debug)]
pub struct Record {
    kind: c_int,
    name: *const c_char,
    backend_id: c_int,
    split_id: c_int,
    start_ns: u64,
    end_ns: u64,
    bytes: u64,
    extra: *const c_char,
    tensor_name: [c_char; MAX_NAME],
    ne: [i64; 4],
    out_type: c_int,
    n_src: c_int,
    ne_src: [[i64; 4]; MAX_SRC],
    nb_src: [[i64; 4]; MAX_SRC],
    type_src: [c_int; MAX_SRC],
    op_params: [i32; 16],
    sub_op: c_int,
}

/// Records and the texts they point to.
#[derive(Debug, Default)]
pub(crate) struct Records {
    records: Vec<Record>,
    texts: HashMap<StringId, CString>,
}

// SAFETY: the pointers are to texts in the same value, which are not changed any more.
unsafe impl Send for Records {}

impl Records {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut records = Self::default();
        for event in trace.events.iter() {
            let record = records.record(trace, &event);
            records.records.push(record);
        }
        records
    }

    pub(crate) fn as_slice(&self) -> &[Record] {
        &self.records
    }

    fn record(&mut self, trace: &Trace, event: &Event) -> Record {
        let signature = trace.signature(event.node);
        let sources = &signature.sources[..signature.sources.len().min(MAX_SRC)];
        fn column<T>(sources: &[Source], none: T, get: impl Fn(&Source) -> T) -> [T; MAX_SRC]
        where
            T: Copy,
        {
            std::array::from_fn(|at| sources.get(at).map_or(none, &get))
        }
        Record {
            kind: event.kind as c_int,
            name: self.text(trace, signature.op),
            backend_id: trace.backend(event.backend).id,
            split_id: event.split,
            start_ns: event.start_ns,
            end_ns: event.end_ns(),
            bytes: event.bytes,
            extra: signature.extra.map_or(std::ptr::null(), |extra| self.text(trace, extra)),
            tensor_name: cut(trace.tensor_name(event.node).unwrap_or_default()),
            ne: signature.output.ne,
            out_type: signature.output.type_id,
            n_src: sources.len() as c_int,
            ne_src: column(sources, [0; 4], |source| source.tensor.ne),
            nb_src: column(sources, [0; 4], |source| source.nb),
            type_src: column(sources, -1, |source| source.tensor.type_id),
            op_params: signature.op_params,
            sub_op: signature.sub_op,
        }
    }

    fn text(&mut self, trace: &Trace, id: StringId) -> *const c_char {
        let text = self
            .texts
            .entry(id)
            .or_insert_with(|| CString::new(trace.text(id).replace('\0', " ")).unwrap_or_default());
        text.as_ptr()
    }
}

/// As much of a name as fits before the zero byte.
fn cut(name: &str) -> [c_char; MAX_NAME] {
    let longest = name.len().min(MAX_NAME - 1);
    let end = (0..=longest).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    let mut field = [0; MAX_NAME];
    for (place, byte) in field.iter_mut().zip(name.as_bytes()[..end].iter()) {
        *place = *byte as c_char;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters_and_end_in_zero() {
        let text = |field: [c_char; MAX_NAME]| -> Vec<u8> {
            field.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect()
        };
        assert_eq!(text(cut("blk.0.attn_q")), b"blk.0.attn_q");
        assert_eq!(text(cut(&"x".repeat(100))).len(), 63);
        assert_eq!(text(cut(&"é".repeat(50))).len(), 62);
    }

    #[test]
    fn the_struct_is_as_large_as_that_of_the_profiler_proposed_for_ggml() {
        assert_eq!(size_of::<Record>(), 912);
    }
}
