//! The registers of arguments, for macros that declare functions.

/// Invokes a macro with one name for each argument register that is left after a function's known
/// arguments, put between `$front` and `$rest`. A version or a fork may have added arguments there.
macro_rules! words_beside {
    ([$($known:ident)*], $then:ident! { $($front:tt)* } { $($rest:tt)* }) => {
        $crate::arch::words_beside! {
            @ [$($known)*] of [w1 w2 w3 w4 w5 w6], $then! { $($front)* } { $($rest)* }
        }
    };
    (@ [$known:ident $($others:ident)*] of [$taken:ident $($words:ident)*], $($then:tt)*) => {
        $crate::arch::words_beside! { @ [$($others)*] of [$($words)*], $($then)* }
    };
    (@ [] of [$($word:ident)*], $then:ident! { $($front:tt)* } { $($rest:tt)* }) => {
        $then! { $($front)* [$($word)*] $($rest)* }
    };
}

/// The same for a function with a struct by value behind its known arguments: `@before` lists the words
/// in front of the struct, and `@behind` those behind. It lies on the stack, behind all registers.
macro_rules! words_around_struct {
    ([$($known:ident)*], $then:ident! { $($rest:tt)* }) => {
        $crate::arch::words_beside! {
            [$($known)*], $then! { @before } { @behind [] $($rest)* }
        }
    };
}

pub(crate) use {words_around_struct, words_beside};
