//! What `ggprof diff` prints, on a recording of ggml's own profiler and on copies of it in
//! which something takes longer.

use crate::place::{Place, Ran, example, original};
use expect_test::expect_file;
use serde_json::Value;

/// A product that each token of the example needs 16 of.
const LONGER: &str = "Qcur-";

/// The example in which products of one shape take longer, and all that follows comes later. `more`
/// tells by how much, given what it took and which of them it is. Also how long all of that is.
fn slower(more: impl Fn(u64, u64) -> u64) -> (Value, u64) {
    let mut profile = original();
    let records = profile["records"].as_array_mut().unwrap();
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&at| records[at]["start_ns"].as_u64());
    let (mut later_ns, mut number) = (0, 0);
    for at in order {
        let record = &mut records[at];
        record["start_ns"] = (record["start_ns"].as_u64().unwrap() + later_ns).into();
        let is_meant = record["name"] == "MUL_MAT"
            && record["tensor_name"].as_str().unwrap().starts_with(LONGER);
        if is_meant {
            let ns = record["duration_ns"].as_u64().unwrap();
            let more_ns = more(ns, number);
            record["duration_ns"] = (ns + more_ns).into();
            later_ns += more_ns;
            number += 1;
        }
    }
    (profile, later_ns)
}

fn place_with(name: &str, profile: &Value) -> Place {
    let place = Place::new();
    std::fs::copy(example(), place.path("a.json.gz")).unwrap();
    place.file(name, profile.to_string());
    place
}

fn json(ran: Ran) -> Value {
    serde_json::from_str(&ran.succeeded().out).expect("JSON")
}

#[test]
fn a_slower_product_in_all_formats() {
    let (profile, _) = slower(|ns, _| ns / 2);
    let place = place_with("b.json", &profile);
    let diff = |arguments: &[&str]| {
        place
            .run(&[&["diff", "a.json.gz", "b.json", "--top", "4"], arguments].concat())
            .succeeded()
            .out
    };
    expect_file!["golden/diff.txt"].assert_eq(&diff(&[]));
    expect_file!["golden/diff.md"].assert_eq(&diff(&["--format", "markdown"]));
    expect_file!["golden/diff.csv"].assert_eq(&diff(&["--format", "csv", "--by", "op"]));
    expect_file!["golden/diff.json"].assert_eq(&diff(&["--format", "json", "--by", "part"]));
}

#[test]
fn the_contribution_is_what_was_added_and_all_of_them_are_the_change() {
    let (profile, added_ns) = slower(|ns, _| ns / 20);
    let place = place_with("b.json", &profile);
    let diff = json(place.run(&["diff", "a.json.gz", "b.json", "--format", "json"]));
    let tokens = diff["phases"][0]["units_a"].as_f64().unwrap();
    let added_ns = added_ns as f64 / tokens;
    let rows = diff["contributions"].as_array().unwrap();
    let change = |row: &Value| row["change_ns"].as_f64().unwrap();
    // Its interval does not contain zero; but another recording of the same might be as far away.
    assert_eq!(
        (&rows[0]["op"], &rows[0]["noise"]),
        (&"MUL_MAT".into(), &"~".into()),
        "{}",
        rows[0]
    );
    assert!(rows[0]["low_ns"].as_f64().unwrap() > 0.0, "{}", rows[0]);
    // The first call of all took much longer, and what it took beyond the usual has its own row.
    let interrupted = rows.iter().find(|row| row["op"] == "calls that were interrupted");
    let found_ns = change(&rows[0]) + interrupted.map_or(0.0, change);
    assert!((found_ns - added_ns).abs() < 1e-3, "{found_ns} of {added_ns}");
    let all: f64 = rows.iter().map(change).sum();
    assert!((all - change(&diff["phases"][0])).abs() < 1e-3, "{all}");
}

/// One call that took 20 ms more tells nothing for certain, but is most of the change.
#[test]
fn the_largest_row_is_shown_wherever_it_stands() {
    let (profile, _) = slower(|ns, number| if number == 40 { 20_000_000 } else { ns / 5 });
    let place = place_with("b.json", &profile);
    let words = ["diff", "a.json.gz", "b.json", "--top", "1", "--format", "markdown"];
    let table = place.run(&words).succeeded().out;
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| tg24 |")).collect();
    let at = |text: &str| rows.iter().position(|row| row.contains(text));
    let (surest, largest) = (at("MUL\\_MAT |"), at("calls that were interrupted"));
    assert!(surest.is_some() && surest < largest, "{table}");
    assert!(rows.iter().any(|row| row.contains("more rows")), "{table}");
}

/// Five recordings a side, and the recordings of each side differ by more than the sides do, or not.
#[test]
fn several_recordings_a_side() {
    let place = Place::new();
    let write = |name: &str, percent: u64| {
        let (profile, _) = slower(|ns, _| ns * percent / 100);
        place.file(name, profile.to_string());
    };
    let a = ["a1.json", "a2.json", "a3.json", "a4.json", "a5.json"];
    let b = ["b1.json", "b2.json", "b3.json", "b4.json", "b5.json"];
    a.iter().zip([0, 2, 4, 1, 3]).for_each(|(name, percent)| write(name, percent));
    b.iter().zip([9, 11, 7, 10, 8]).for_each(|(name, percent)| write(name, percent));
    let diff = |a: &[&str], b: &[&str]| {
        let words = [&["diff"], a, &["--vs"], b, &["--format", "json"]].concat();
        json(place.run(&words))
    };
    let apart = diff(&a, &b);
    assert_eq!(apart["phases"][0]["noise"], "", "{}", apart["phases"]);
    assert_eq!(apart["contributions"][0]["noise"], "~", "one key of sixteen needs more recordings");
    let mixed = diff(&[a[0], a[2], b[1], a[1], b[0]], &[a[3], b[3], a[4], b[4], b[2]]);
    assert_eq!(mixed["phases"][0]["noise"], "~");
    assert!(mixed["phases"][0]["smallest_seen_ns"].as_f64().unwrap() > 0.0);
    let alone = apart["noise"]["alone"].as_str().unwrap_or_default();
    assert!(alone.contains("needs 7 recordings a side"), "{}", apart["noise"]);
    // Smaller than the smallest chance that three against three can have.
    let few = diff(&a[..3], &b[..3]);
    assert_eq!(
        (&few["phases"][0]["noise"], few["phases"][0]["smallest_seen_ns"].is_null()),
        (&"~".into(), true)
    );
    let one = diff(&a[..1], &b[..3])["noise"]["source"].clone();
    assert_eq!(one, "1 recording against 3 are too few to tell: record 5 a side");
}

/// A pipe gives a recording once, and the page has both timelines nevertheless.
#[test]
fn a_page_of_what_comes_through_a_pipe() {
    let (profile, _) = slower(|ns, _| ns / 2);
    let place = place_with("b.json", &profile);
    let tables_of = |words: &[&str]| {
        let words = [words, &["--html", "page.html", "--format", "json"]].concat();
        json(place.run_with_input(&words, profile.to_string().as_bytes()));
        let page = std::fs::read_to_string(place.path("page.html")).unwrap();
        assert_eq!(page.matches("<iframe").count(), 2);
        page.split_once("<main>").unwrap().1.replace("standard input", "b.json")
    };
    let (piped, read) =
        (tables_of(&["diff", "a.json.gz", "-"]), tables_of(&["diff", "a.json.gz", "b.json"]));
    assert!(piped == read);
}

#[test]
fn sides_that_cannot_be_compared() {
    let place = place_with("b.json", &original());
    for arguments in [&["diff", "a.json.gz"][..], &["diff", "a.json.gz", "b.json", "b.json"]] {
        place.run(arguments).failed_with_a_sentence();
    }
    place.run(&["diff", "a.json.gz", "c.json"]).failed_with_a_sentence();
    // A recording that counts twice would make chance look like certainty.
    let twice = place.run(&["diff", "a.json.gz", "b.json", "./a.json.gz", "--vs", "b.json"]);
    twice.failed_with_a_sentence();
    assert!(twice.err.contains("is named twice"), "{twice:?}");
    let copied = place.run(&["diff", "a.json.gz", "b.json", "--vs", "b.json"]);
    copied.failed_with_a_sentence();
    assert!(copied.err.contains("a.json.gz and b.json hold the same recording"), "{copied:?}");
    place.run(&["diff", "a.json.gz", "b.json", "--phase", "pp"]).failed_with_a_sentence();
}

#[test]
fn a_script_hears_of_a_change_by_the_exit_code() {
    let place = Place::new();
    let side = |name: &str, ns: u64| -> Vec<String> {
        let names = (0..5).map(|at| format!("{name}{at}.json"));
        names
            .enumerate()
            .map(|(at, file)| {
                let (profile, _) = slower(|_, _| ns + at as u64);
                place.file(&file, profile.to_string());
                file
            })
            .collect()
    };
    let (a, b) = (side("a", 0), side("b", 20_000));
    let diff = |a: &[String], b: &[String], condition: &str| {
        let files =
            a.iter().chain([const { &String::new() }]).chain(b).map(|file| match file.as_str() {
                "" => "--vs",
                file => file,
            });
        let words = ["diff"].into_iter().chain(files);
        let words = words.chain(["--by", "backend", "--fail-if", condition]);
        place.run(&words.collect::<Vec<_>>())
    };
    let slower = diff(&a, &b, "tg > 3%");
    assert_eq!((slower.code, slower.err.as_str()), (Some(4), "ggprof: tg > 3% is true.\n"));
    assert_eq!(diff(&a, &b, "tg24 > 100us").code, Some(4));
    for (a, b, condition) in [(&a, &b, "tg > 50%"), (&b, &a, "any > 3%"), (&a, &a, "any > 1%")] {
        assert_eq!(diff(a, b, condition).succeeded().err, "", "{condition}");
    }
    // So few tell nothing, whatever their interval is.
    let few = diff(&a[..4], &a[..4], "any > 1%");
    assert!(few.code == Some(0) && few.err.contains("cannot be told from so many runs"), "{few:?}");
    // With one recording a side there may be such a change or not.
    for (a, b) in [(&a, &b), (&a, &a)] {
        let alone = diff(&a[..1], &b[..1], "tg > 3%");
        assert_eq!(alone.code, Some(0));
        assert!(alone.err.contains("cannot be told from one recording a side"), "{}", alone.err);
    }
    // A renamed phase must not make a script deaf.
    let nothing = diff(&a, &b, "pp > 3%");
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.err.contains("no such phase; they have tg24 in common"), "{}", nothing.err);
    assert_eq!(diff(&a, &b, "tg > 3").code, Some(2));
    assert_eq!(diff(&a, &b, "tg > much").code, Some(2));
}

/// What is usual on a machine is learnt from the recordings of each side.
#[test]
fn a_baseline_knows_what_is_usual() {
    let place = Place::new();
    let names: Vec<String> = (0..53).map(|at| format!("{at}.json")).collect();
    for (at, name) in (0..).zip(&names) {
        // The last one is another program.
        let (profile, _) = slower(|ns, _| at + ns * if at == 52 { 3 } else { 1 - at % 2 });
        place.file(name, profile.to_string());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let known = || {
        let text = std::fs::read(place.path("known/same-program.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap().as_array().unwrap().len()
    };
    let diff = |a: &[&str], b: &[&str]| {
        let options = ["--baseline", "known", "--format", "json"];
        json(place.run(&[&["diff"], &options[..], a, &["--vs"], b].concat()))
    };
    let first = diff(&names[..26], &names[26..52]);
    assert!(first["phases"][0]["usual_share"].is_null());
    assert_eq!(known(), 50);
    // The same recordings tell nothing new, whatever their order.
    diff(&[names[2], names[0], names[1]], &[names[21], names[3]]);
    diff(&names[26..28], &names[..2]);
    assert_eq!(known(), 50);
    // Now it is known that recordings differ by this much, which one of each side did not tell.
    let second = diff(&names[1..2], &names[..1]);
    let usual = second["phases"][0]["usual_share"].as_f64().unwrap();
    let change = second["phases"][0]["change_share"].as_f64().unwrap();
    assert!((usual - change).abs() < 1e-3 && second["phases"][0]["noise"] == "~", "{second}");
    // On a page, too.
    let words = ["diff", "1.json", "52.json", "--baseline", "known", "--fail-if", "tg > 3%"];
    let third = place.run(&[&words[..], &["--html", "pair.html"]].concat());
    assert_eq!(third.code, Some(4), "{third:?}");
    let page = std::fs::read_to_string(place.path("pair.html")).unwrap();
    assert!(page.contains("what is usual on this machine"), "the page is drawn without it");
    place.file("known/same-program.json", "{");
    let words = ["diff", "0.json", "1.json", "--baseline", "known"];
    assert!(place.run(&words).err.contains("is not what ggprof wrote"));
}
