//! What the dynamic section of a loaded object says. The crate `object` reads files, but the loader has
//! been over this section: what was an offset in the file is an address, depending on the C library.
//! It is also read in every process before the program begins, where nothing may be allocated.

use std::ffi::CStr;

/// Where an object in memory has its tables; 0 for those that it has not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dynamic {
    pub(super) base: usize,
    section: usize,
    symbols: usize,
    strings: usize,
    pub(super) versions: usize,
    pub(super) hash: usize,
    pub(super) jump_slots: Table,
    /// Without those at its start that concern no symbol: a program has many of them.
    pub(super) relocations: Table,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Table {
    start: usize,
    bytes: usize,
}

/// Tags whose values are names.
pub(super) const NEEDED: i64 = 1;
pub(super) const OWN_NAME: i64 = 14;

impl Dynamic {
    /// Of the object at this base, whose section is there; `None` where it has none, or no symbols.
    #[unsafe(link_section = ".text.asleep")]
    pub(super) fn of(base: usize, section: usize) -> Option<Dynamic> {
        const JUMP_SLOT_BYTES: i64 = 2;
        const STRINGS: i64 = 5;
        const SYMBOLS: i64 = 6;
        const RELOCATIONS: i64 = 7;
        const RELOCATION_BYTES: i64 = 8;
        const JUMP_SLOTS: i64 = 23;
        const GNU_HASH: i64 = 0x6fff_fef5;
        const VERSIONS: i64 = 0x6fff_fff0;
        const RELATIVE_RELOCATIONS: i64 = 0x6fff_fff9;
        // glibc writes addresses into the section, except into that of the vdso; musl leaves offsets.
        let at = |value: usize| if value < base { value + base } else { value };
        let mut found = Dynamic { base, section, ..Dynamic::default() };
        let mut without_symbol = 0;
        for (tag, value) in entries(section) {
            match tag {
                STRINGS => found.strings = at(value),
                SYMBOLS => found.symbols = at(value),
                VERSIONS => found.versions = at(value),
                GNU_HASH => found.hash = at(value),
                JUMP_SLOTS => found.jump_slots.start = at(value),
                JUMP_SLOT_BYTES => found.jump_slots.bytes = value,
                RELOCATIONS => found.relocations.start = at(value),
                RELOCATION_BYTES => found.relocations.bytes = value,
                RELATIVE_RELOCATIONS => without_symbol = value * size_of::<libc::Elf64_Rela>(),
                _ => {}
            }
        }
        found.relocations = found.relocations.behind(without_symbol);
        (found.symbols != 0 && found.strings != 0).then_some(found)
    }

    /// # Safety
    /// The number is one of the object's symbol table, and the object stays loaded for `'a`.
    pub(super) unsafe fn symbol<'a>(&self, number: usize) -> (&'a libc::Elf64_Sym, &'a CStr) {
        // SAFETY: the caller's contract; the name is a C string of the object's table.
        unsafe {
            let symbol = &*(self.symbols as *const libc::Elf64_Sym).add(number);
            (symbol, CStr::from_ptr((self.strings + symbol.st_name as usize) as *const _))
        }
    }

    /// The names under a tag.
    ///
    /// # Safety
    /// The object stays loaded for `'a`.
    pub(super) unsafe fn names<'a>(&self, tag: i64) -> impl Iterator<Item = &'a CStr> + use<'a> {
        let (strings, section) = (self.strings, self.section);
        entries(section).filter(move |&(other, _)| other == tag).map(move |(_, offset)| {
            // SAFETY: the offset of a C string in the object's table.
            unsafe { CStr::from_ptr((strings + offset) as *const _) }
        })
    }
}

impl Table {
    fn behind(self, bytes: usize) -> Table {
        let bytes = bytes.min(self.bytes);
        Table { start: self.start + bytes, bytes: self.bytes - bytes }
    }

    /// # Safety
    /// It is a table of an object that stays loaded for `'a`.
    pub(super) unsafe fn relocations<'a>(self) -> &'a [libc::Elf64_Rela] {
        if self.start == 0 {
            return &[];
        }
        let count = self.bytes / size_of::<libc::Elf64_Rela>();
        // SAFETY: the section gives the table and its length, and the loader keeps both mapped.
        unsafe { std::slice::from_raw_parts(self.start as *const libc::Elf64_Rela, count) }
    }
}

/// Tags and values; none where there is no section.
fn entries(section: usize) -> impl Iterator<Item = (i64, usize)> {
    let mut at = section as *const [i64; 2];
    std::iter::from_fn(move || {
        // SAFETY: the dynamic section of a loaded object, an array that a zero tag ends.
        let [tag, value] = unsafe { *at.as_ref()? };
        // SAFETY: after an entry that is not the last there is another.
        at = if tag == 0 { std::ptr::null() } else { unsafe { at.add(1) } };
        (tag != 0).then_some((tag, value as usize))
    })
}
