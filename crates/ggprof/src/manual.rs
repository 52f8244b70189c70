//! Manual pages, from the same definitions as `--help`.

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io::{self, Write};

/// A page, and the name of its file.
pub(crate) struct Page {
    pub(crate) file: String,
    pub(crate) roff: Vec<u8>,
}

/// The pages of the command and of all its commands, in this order.
pub(crate) fn pages<C: CommandFactory>() -> io::Result<Vec<Page>> {
    let mut command = C::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &[], &mut pages)?;
    Ok(pages)
}

/// `above` are the commands that it belongs to.
fn collect(command: &Command, above: &[&Command], pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(command, above)?);
    let below: Vec<&Command> = [above, &[command]].concat();
    command.get_subcommands().try_for_each(|sub| collect(sub, &below, pages))
}

fn page(command: &Command, above: &[&Command]) -> io::Result<Page> {
    let version = format!("ggprof {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("ggprof");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    sections(&command.get_after_help().map(ToString::to_string).unwrap_or_default(), &mut roff)?;
    see_also(command, above, &mut roff)?;
    Ok(Page { file: man.get_filename(), roff })
}

/// What stands behind the options: sections under their titles, in which indented lines stay as they
/// are. Paragraphs that belong to none come under a title of their own.
fn sections(text: &str, out: &mut dyn Write) -> io::Result<()> {
    for section in text.split("\n\n") {
        let mut lines = section.lines().peekable();
        match lines.next_if(|line| title(line).is_some()).and_then(title) {
            Some(title) => writeln!(out, ".SH {}", title.to_uppercase())?,
            None => writeln!(out, ".SH NOTES")?,
        }
        let mut is_verbatim = false;
        for line in lines {
            let indented = line.strip_prefix("  ");
            if is_verbatim != indented.is_some() {
                is_verbatim = indented.is_some();
                writeln!(out, ".{}", if is_verbatim { "nf" } else { "fi" })?;
            }
            writeln!(out, "{}", escaped(indented.unwrap_or(line)))?;
        }
        if is_verbatim {
            writeln!(out, ".fi")?;
        }
    }
    Ok(())
}

/// The title of a section: a few words and a colon.
fn title(line: &str) -> Option<&str> {
    let words = line.strip_suffix(':').filter(|words| !words.starts_with(' '))?;
    (words.split(' ').count() <= 4).then_some(words)
}

/// Text in which nothing is an order: no backslash, no dot or apostrophe at its beginning, and no
/// hyphen that would become another sign.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\\\").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// The pages above and beside it.
fn see_also(command: &Command, above: &[&Command], out: &mut dyn Write) -> io::Result<()> {
    let beside = above.last().into_iter().flat_map(|parent| parent.get_subcommands());
    let below = command.get_subcommands();
    let others = above.iter().copied().chain(beside).chain(below);
    let names = others.filter_map(|other| other.get_display_name().or(Some(other.get_name())));
    let own = command.get_display_name().unwrap_or_default();
    let names = names.filter(|name| *name != own);
    let names: Vec<String> = names.map(|name| format!("{}(1)", escaped(name))).collect();
    writeln!(out, ".SH \"SEE ALSO\"\n{}", names.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_command_has_a_page_with_examples() {
        let pages = pages::<Cli>().unwrap();
        assert!(pages.len() > 15);
        for page in pages {
            let text = String::from_utf8(page.roff).unwrap();
            for section in [".SH NAME\n", ".SH EXAMPLES\n.nf\n", ".SH \"SEE ALSO\"\n"] {
                assert!(text.contains(section), "{} has no {section}", page.file);
            }
            assert!(!text.contains("deliver"), "{}", page.file);
        }
    }

    #[test]
    fn sections_of_a_text() {
        let mut out = Vec::new();
        let text = "Examples:\n  a -b\n  'c\n\nA sentence\\ of\nits own:\n\nKeys:\n  .x";
        sections(text, &mut out).unwrap();
        expect_test::expect![[r#"
            .SH EXAMPLES
            .nf
            a \-b
            \&'c
            .fi
            .SH NOTES
            A sentence\\ of
            its own:
            .SH KEYS
            .nf
            \&.x
            .fi
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
