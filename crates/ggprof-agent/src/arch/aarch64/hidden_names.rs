//! Symbols that are visible in this library only.

/// Each name leads on to the function with its number.
macro_rules! hidden_names {
    ($to:ident: $($name:literal $number:literal)*) => {
        $(std::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            ".p2align 2",
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ": b {to}"),
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            to = sym $to::<$number>,
        );)*
    };
}

pub(crate) use hidden_names;
