//! The HTML around data, script and style.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// Only this script and this style may run, and nothing may be loaded: names come from files
/// that strangers made.
fn policy(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

pub(super) fn write(
    title: &str,
    script: &str,
    style: &str,
    data: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (title, policy) = (escape(title), policy(script, style));
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title} · ggprof</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <noscript>This page draws a recording of ggprof and needs JavaScript for it.</noscript>\n\
         <script type=\"application/octet-stream\" id=\"recording\">"
    )?;
    out.write_all(data.as_bytes())?;
    write!(out, "</script>\n<script>{script}</script>\n</body>\n</html>\n")
}

pub(super) fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text))
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}
