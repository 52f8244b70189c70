//! Functions that give back a struct which is too large for registers: the caller tells them where to
//! put it, on each processor in another way.

use std::marker::PhantomData;

use crate::arch::Word;

/// Room for such a struct, with what a function puts there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeStruct(pub(crate) [Word; 32]);

/// A function that makes such a struct.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakesStruct<A> {
    function: usize,
    arguments: PhantomData<A>,
}

impl<A: Arguments> MakesStruct<A> {
    /// # Safety
    /// The function of the address takes these arguments, and gives back a struct that fits.
    pub(crate) unsafe fn at(function: usize) -> Self {
        MakesStruct { function, arguments: PhantomData }
    }

    /// Words that the function does not write keep the value `before`.
    pub(crate) fn call(self, arguments: A, before: Word) -> MadeStruct {
        let mut made = MadeStruct([before; 32]);
        // SAFETY: whoever made `self` guarantees it.
        unsafe { arguments.hand_to(self.function, &raw mut made) };
        made
    }
}

/// Arguments that a function takes in registers; the processor's `layout.rs` says how.
pub(crate) trait Arguments {
    /// # Safety
    /// The function takes them, and puts what it makes in the place.
    unsafe fn hand_to(self, function: usize, place: *mut MadeStruct);
}
