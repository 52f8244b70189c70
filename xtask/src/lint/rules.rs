//! Checks that each rule that explains a recording is tried by a test in its own file, and is in the document;
//! and that the document has no others.

use std::collections::BTreeSet;
use std::path::Path;

use super::source::{Source, below};

const RULES: &str = "crates/ggprof-analysis/src/findings/";
const DOCUMENT: &str = "docs/explain.md";
/// Of a phase that is as fast as it can be: it names no cost, so it is no finding with a constant.
const AT_THE_LIMIT: u32 = 10;

/// A sentence for each that is not.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::from([AT_THE_LIMIT]);
    for file in below(root, RULES)? {
        for (name, number) in rules(&file.code()) {
            numbers.insert(number);
            if !is_tried(&file.code(), &name) {
                findings.push(format!("{}: no test has rule {number}, {name}", file.path));
            }
        }
    }
    let rows = rows(&Source::read(root, DOCUMENT)?.text);
    let differing = numbers.symmetric_difference(&rows);
    findings.extend(differing.map(|number| {
        let where_missing = if rows.contains(number) { RULES } else { DOCUMENT };
        format!("{where_missing}: there is no rule {number}")
    }));
    Ok(findings)
}

/// Names and numbers in lines such as `const RULE: Rule = Rule(5);`.
fn rules(code: &str) -> Vec<(String, u32)> {
    let rule = |line: &str| {
        let (name, number) = line.split_once("const ")?.1.split_once(": Rule = Rule(")?;
        Some((name.to_owned(), number.split_once(')')?.0.parse().ok()?))
    };
    code.lines().filter_map(rule).collect()
}

fn is_tried(code: &str, name: &str) -> bool {
    let Some((_, tests)) = code.split_once("mod tests {") else { return false };
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    tests.split(|letter| !is_of_name(letter)).any(|word| word == name)
}

/// Numbers of rows such as `| R5 | …`.
fn rows(document: &str) -> BTreeSet<u32> {
    let rule = |line: &str| line.strip_prefix("| R")?.split_once(' ')?.0.parse().ok();
    document.lines().filter_map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_and_its_test() {
        let code =
            "pub(super) const SLOW: Rule = Rule(7);\nmod tests { fn x() { check(SLOW, 1) } }";
        assert_eq!(rules(code), [("SLOW".to_owned(), 7)]);
        assert!(is_tried(code, "SLOW") && !is_tried(code, "SLO"));
        assert_eq!(rows("| R7 | x |\n| rule |\n| R22 | y |"), BTreeSet::from([7, 22]));
    }
}
