//! Finding the slots of a backend's function table: a fake backend full of
//! stubs is handed to ggml's public functions, and the stub that fires names the
//! slot. The table grew in the middle between versions, so counting is no way.

use std::cell::Cell;

use super::api::{Api, InitParams, Pointer};

/// Words of the fake backend; real ones have 17 to 19.
const WORDS: usize = 48;

thread_local! {
    static FIRED: Cell<usize> = const { Cell::new(0) };
}

/// Byte offsets of the slots in `struct ggml_backend`; 0 where not found (the
/// struct begins with an identifier, so no slot is at 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackendLayout {
    pub(crate) free: usize,
    pub(crate) cpy_tensor_async: usize,
    pub(crate) synchronize: usize,
    pub(crate) graph_compute: usize,
}

impl BackendLayout {
    pub(crate) fn probe(api: &Api) -> Option<BackendLayout> {
        let mut fake: [usize; WORDS] = STUBS.map(|stub| stub as usize);
        let fake: Pointer = fake.as_mut_ptr().cast();
        let null = std::ptr::null_mut();
        let graph_compute = api.ggml_backend_graph_compute_async?;
        let synchronize = api.ggml_backend_synchronize?;
        // SAFETY: these functions pass the backend on to one function of its
        // table and look at nothing else; every word of the fake is a function
        // that takes any arguments.
        let mut layout = unsafe {
            BackendLayout {
                graph_compute: fired_by(|| _ = graph_compute(fake, null)),
                synchronize: fired_by(|| synchronize(fake)),
                free: api.ggml_backend_free.map_or(0, |free| fired_by(|| free(fake))),
                ..BackendLayout::default()
            }
        };
        find_copy(api, fake, &mut layout);
        (layout.graph_compute != 0).then_some(layout)
    }
}

/// The copy function wants real tensors.
fn find_copy(api: &Api, fake: Pointer, layout: &mut BackendLayout) -> Option<()> {
    let (init, free, new) = (api.ggml_init?, api.ggml_free?, api.ggml_new_tensor_1d?);
    let copy = api.ggml_backend_tensor_copy_async?;
    let params = InitParams { bytes: 16 * 1024, buffer: std::ptr::null_mut(), no_alloc: false };
    // SAFETY: tensors of a context of our own, with data; the fake backend takes
    // the call before anything is copied.
    unsafe {
        let context = init(params);
        if context.is_null() {
            return None;
        }
        let (a, b) = (new(context, 0, 16), new(context, 0, 16));
        layout.cpy_tensor_async = fired_by(|| copy(fake, fake, a, b));
        free(context);
    }
    Some(())
}

/// The offset of the slot that the call reached.
fn fired_by(call: impl FnOnce()) -> usize {
    FIRED.set(0);
    call();
    FIRED.get() * size_of::<usize>()
}

/// One function per word. It answers "done" so that ggml tries nothing else.
extern "C-unwind" fn stub<const WORD: usize>() -> usize {
    FIRED.set(WORD);
    1
}

macro_rules! stubs {
    ($($word:literal)*) => { [$(stub::<$word>),*] };
}

static STUBS: [extern "C-unwind" fn() -> usize; WORDS] = stubs!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
    24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
);
