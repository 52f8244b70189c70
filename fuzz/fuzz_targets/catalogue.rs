//! No catalogue makes its reader, a question or a page panic, and what is read is written the same.
#![no_main]

use ggprof_analysis::catalogue::{CatalogueEntry, Dimension, Found, Question, lines, read, series};
use ggprof_report::documents::{self, Catalogued};
use ggprof_report::render::{self, Style};
use ggprof_report::viewer;
use libfuzzer_sys::fuzz_target;
use std::io::sink;

fuzz_target!(|data: &[u8]| {
    let kept = read(data);
    let again = read(&lines(&kept.known));
    assert!(again.known == kept.known && again.damaged == 0);
    let recordings: Vec<(&str, &CatalogueEntry)> = kept
        .known
        .iter()
        .filter_map(|known| match &known.found {
            Found::Recording(entry) => Some((known.file.as_str(), &**entry)),
            Found::Unreadable(_) => None,
        })
        .collect();
    for by in [&[Dimension::Commit, Dimension::Device][..], &[Dimension::File], &[]] {
        let question = Question { by: by.to_vec(), ..Question::default() };
        let found = series(&recordings, &question);
        let document = documents::index(&found, by, Catalogued::default());
        let text = render::console(&document, &Style { width: Some(80), colour: false });
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        render::markdown(&document);
        render::csv(&document);
        viewer::write_history(&found, &document, &mut sink()).expect("a sink takes everything");
        render::json(&[document]);
    }
});
