//! The numbers that a ggml gives its ops, types and functions.
//!
//! ggml tells the name of a number, but not how many there are. Asking for one too many reads past the
//! end of a table, or ends the process. So this runs in a process of its own, and prints each name
//! before it asks for the next.

use crate::library::{Library, text};
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Write};
use std::path::Path;

/// More than any version has.
const MOST: c_int = 512;

pub(crate) type Name = unsafe extern "C" fn(c_int) -> *const c_char;
type BlockElements = unsafe extern "C" fn(c_int) -> i64;
type BlockBytes = unsafe extern "C" fn(c_int) -> usize;

/// Prints `op 29 MUL_MAT`, `unary 10 SILU`, `glu 2 SWIGLU` and `type 2 q4_0 32 18`, a line each. The
/// types come last, because ggml may end the process after the last one.
pub fn list(library: &Path, out: &mut dyn Write) -> Result<(), String> {
    let library = Library::open(library)?;
    // SAFETY: the signatures are those of ggml.h.
    let functions = unsafe {
        [
            ("op", library.function::<Name>(c"ggml_op_name")),
            ("unary", library.function::<Name>(c"ggml_unary_op_name")),
            ("glu", library.function::<Name>(c"ggml_glu_op_name")),
        ]
    };
    // SAFETY: the same.
    let of_type = unsafe { library.function::<Name>(c"ggml_type_name") };
    let (Some(_), Some(type_name)) = (functions[0].1, of_type) else {
        return Err("it has no ggml_op_name or no ggml_type_name: name libggml-base".to_owned());
    };
    for (kind, name) in functions {
        let Some(name) = name else { continue };
        print_names(kind, name, out).map_err(|error| error.to_string())?;
    }
    print_types(library, type_name, out).map_err(|error| error.to_string())
}

/// Until something comes that is no name in capitals: what follows a table in memory.
fn print_names(kind: &str, name: Name, out: &mut dyn Write) -> io::Result<()> {
    for number in 0..MOST {
        // SAFETY: in a process of its own, should ggml have no such number.
        let Some(name) = (unsafe { text(name(number)) }).filter(|name| is_name(name)) else {
            break;
        };
        writeln!(out, "{kind} {number} {name}")?;
        out.flush()?;
    }
    Ok(())
}

/// The number of a name, among those that a function tells.
pub(crate) fn number_of(name: Name, wanted: &str) -> Option<c_int> {
    for number in 0..MOST {
        // SAFETY: in a process of its own, should ggml have no such number.
        let found = (unsafe { text(name(number)) }).filter(|name| is_name(name))?;
        if found == wanted {
            return Some(number);
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    let is_letter =
        |letter: u8| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == b'_';
    !name.is_empty() && name.len() < 64 && name.bytes().all(is_letter)
}

fn print_types(library: Library, name: Name, out: &mut dyn Write) -> io::Result<()> {
    let size = |name: &CStr| -> Option<BlockBytes> {
        // SAFETY: the signature is that of ggml.h.
        unsafe { library.function(name) }
    };
    // SAFETY: the same.
    let elements: Option<BlockElements> = unsafe { library.function(c"ggml_blck_size") };
    let (Some(elements), Some(bytes)) = (elements, size(c"ggml_type_size")) else { return Ok(()) };
    for number in 0..MOST {
        // SAFETY: as above.
        let (name, elements, bytes) =
            unsafe { (text(name(number)), elements(number), bytes(number)) };
        // Types that were dropped have no name, or a sentence.
        let name = name.filter(|name| !name.is_empty() && !name.contains(char::is_whitespace));
        if let Some(name) = name.filter(|_| elements > 0 && bytes > 0) {
            writeln!(out, "type {number} {name} {elements} {bytes}")?;
            out.flush()?;
        }
    }
    Ok(())
}
