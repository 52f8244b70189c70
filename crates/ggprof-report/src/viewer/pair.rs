//! Two recordings on one page: their timelines, each in a frame, and what changed from one to the other.
//! The frames tell each other what they show and select (`viewer/interact/link.js`); the page passes it
//! on.

use super::page::{escape, hash};
use super::{bundle, write};
use crate::Document;
use crate::render;
use ggprof_trace::Trace;
use std::io::{self, Write};

const SCRIPT: &str = r#"
const frames = [...document.querySelectorAll("iframe")].map((frame) => frame.contentWindow);
addEventListener("message", ({ source, data }) => {
  if (frames.includes(source)) frames.filter((it) => it !== source).forEach((it) => it.postMessage(data, "*"));
});
"#;

const STYLE: &str = r#"
:root { color-scheme: light dark; font: 14px system-ui, sans-serif; }
body { margin: 0; }
iframe { display: block; width: 100%; height: 46vh; border: 0; border-bottom: 2px solid GrayText; }
main { padding: 0 1em 2em; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.15em 0.7em; text-align: left; white-space: nowrap; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
tr:hover td { background: color-mix(in srgb, Highlight 20%, transparent); }
"#;

/// Writes the page: both recordings with their names, and the comparison.
pub fn write_pair(
    recordings: [(&Trace, &str); 2],
    comparison: &Document,
    out: &mut dyn Write,
) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'sha256-{}' 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(&bundle::script()),
        hash(STYLE),
        hash(bundle::style()),
    );
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>ggprof diff</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )?;
    for (side, (trace, name)) in ["A", "B"].into_iter().zip(recordings) {
        let mut page = Vec::new();
        write(trace, &format!("{side}: {name}"), None, None, &mut page)?;
        let page = escape(&String::from_utf8_lossy(&page));
        writeln!(
            out,
            "<iframe title=\"{side}\" sandbox=\"allow-scripts\" srcdoc=\"{page}\"></iframe>"
        )?;
    }
    let tables = render::html(comparison);
    write!(out, "<main>{tables}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}
