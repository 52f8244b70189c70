//! Makes one script of the viewer's modules, so that a page needs no other file and a build
//! no JavaScript tools.
//!
//! Each module becomes a function that returns what the module exports; imports become
//! look-ups in the results of the functions before. The modules keep to two forms for this:
//! `import { a, b } from "./c.js";` and `export` in front of a declaration.

use flate2::read::DeflateDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

/// The viewer's files, as `build.rs` packs them.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/viewer"));

/// The same by their names.
static SOURCES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut text = String::new();
    DeflateDecoder::new(PACKED).read_to_string(&mut text).expect("it was packed by the build");
    let (mut sources, mut rest) = (BTreeMap::new(), &text[..]);
    while let Some((head, behind)) = rest.split_once('\n') {
        let (name, length) = head.split_once(' ').expect("a name and a length");
        let (source, next) = behind.split_at(length.parse().expect("a length"));
        sources.insert(name.to_owned(), source.to_owned());
        rest = next;
    }
    sources
});

/// The modules, each after those that it imports.
const MODULES: &[&str] = &[
    "data/units.js",
    "data/columns.js",
    "data/embedded.js",
    "data/device.js",
    "data/estimates.js",
    "data/recording.js",
    "data/query.js",
    "data/statistics.js",
    "data/gaps.js",
    "data/roofline.js",
    "data/markdown.js",
    "state.js",
    "layout/colours.js",
    "layout/ticks.js",
    "layout/lanes.js",
    "layout/visible.js",
    "layout/levels.js",
    "layout/counters.js",
    "layout/streams.js",
    "layout/requests.js",
    "layout/bands.js",
    "layout/groups.js",
    "layout/runs.js",
    "layout/rows.js",
    "layout/times.js",
    "layout/scene.js",
    "draw/canvas.js",
    "draw/parts.js",
    "draw/bars.js",
    "draw/counter.js",
    "draw/ruler.js",
    "draw/timeline.js",
    "draw/overlay.js",
    "draw/minimap.js",
    "draw/axes.js",
    "draw/roofline.js",
    "draw/experts.js",
    "draw/depth.js",
    "interact/actions.js",
    "interact/pointer.js",
    "interact/minimap.js",
    "interact/keyboard.js",
    "interact/hash.js",
    "interact/link.js",
    "panels/element.js",
    "panels/table.js",
    "panels/head.js",
    "panels/histogram.js",
    "panels/kernels.js",
    "panels/details.js",
    "panels/statistics.js",
    "panels/search.js",
    "panels/legend.js",
    "panels/overview.js",
    "panels/requests.js",
    "panels/gaps.js",
    "panels/roofline.js",
    "panels/experts.js",
    "panels/depth.js",
    "panels/help.js",
    "panels/tabs.js",
    "panels/toolbar.js",
    "panels/tooltip.js",
    "main.js",
];

/// Those of the page of many recordings.
const HISTORY: &[&str] = &[
    "data/units.js",
    "data/columns.js",
    "data/embedded.js",
    "data/roofline.js",
    "layout/colours.js",
    "draw/canvas.js",
    "draw/axes.js",
    "panels/element.js",
    "panels/table.js",
    "history/series.js",
    "history/chart.js",
    "history/main.js",
];

pub(super) fn style() -> &'static str {
    &SOURCES["viewer.css"]
}

pub(super) fn script() -> String {
    script_of(MODULES)
}

pub(super) fn history_script() -> String {
    script_of(HISTORY)
}

fn script_of(modules: &[&str]) -> String {
    let mut script = String::from("\"use strict\";\nconst modules = {};\n");
    for path in modules {
        let source = &SOURCES[*path];
        let exported = exports(source).join(", ");
        let body = without_modules(path, source);
        script.push_str(&format!(
            "modules[\"{path}\"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
        ));
    }
    script
}

/// Names behind `export function`, `export const` and the like.
fn exports(source: &str) -> Vec<&str> {
    let declarations = source.lines().filter_map(|line| line.strip_prefix("export "));
    let names = declarations.filter_map(|declaration| {
        let mut words = declaration.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.find(|word| !matches!(*word, "" | "async" | "function" | "const" | "class"))
    });
    names.collect()
}

fn without_modules(path: &str, source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut import = String::new();
    for line in source.lines() {
        if !import.is_empty() || line.starts_with("import ") {
            import.push_str(line);
            if line.ends_with(';') {
                out.push_str(&look_up(path, &import));
                import.clear();
            }
            continue;
        }
        out.push_str(line.strip_prefix("export ").unwrap_or(line));
        out.push('\n');
    }
    out
}

/// `import { a } from "../x/b.js";` in `y/c.js` as `const { a } = modules["x/b.js"];`.
fn look_up(path: &str, import: &str) -> String {
    let (names, from) = import.split_once("from").unwrap_or((import, ""));
    let from = from.trim_matches([' ', ';', '"']);
    let mut folder: Vec<&str> = path.split('/').collect();
    folder.pop();
    for step in from.split('/') {
        match step {
            "." => {}
            ".." => drop(folder.pop()),
            name => folder.push(name),
        }
    }
    let names = names.trim_start_matches("import").trim();
    format!("const {names} = modules[\"{}\"];\n", folder.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_and_exports() {
        let source = "import { a } from \"../x/b.js\";\nimport {\n  c,\n} from \"./d.js\";\n\
                      export async function f() {}\nexport const G = 1;\n";
        assert_eq!(exports(source), ["f", "G"]);
        assert_eq!(
            without_modules("y/c.js", source),
            "const { a } = modules[\"x/b.js\"];\nconst {  c,} = modules[\"y/d.js\"];\n\
             async function f() {}\nconst G = 1;\n"
        );
    }

    #[test]
    fn every_import_comes_before_its_use() {
        for modules in [MODULES, HISTORY] {
            for (at, path) in modules.iter().enumerate() {
                for line in without_modules(path, &SOURCES[*path]).lines() {
                    let Some((_, wanted)) = line.split_once("= modules[\"") else { continue };
                    let wanted = wanted.trim_end_matches("\"];");
                    let known = modules[..at].contains(&wanted);
                    assert!(known, "{path} imports {wanted}, which does not come before it");
                }
            }
        }
    }
}
