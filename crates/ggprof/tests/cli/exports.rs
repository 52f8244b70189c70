//! Files are what their names say, whichever command writes them, and what is there stays.

use crate::place::{GGPROF, Place, RECORD, example, profile};
use expect_test::expect;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A recording as the agent makes it, compressed.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/llama-moe-cpu-h200.ggprof.gz")
}

fn unpacked(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap();
    let mut plain = Vec::new();
    match file.extension().unwrap().to_str().unwrap() {
        "gz" => drop(flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap()),
        "zst" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..]);
            decoder.unwrap().read_to_end(&mut plain).unwrap();
        }
        _ => plain = bytes,
    }
    plain
}

#[test]
fn compressed_names_are_compressed_and_read_again() {
    let place = Place::new();
    let example = example();
    let example = example.to_str().unwrap();
    for extension in ["json", "txt", "csv", "md", "html", "pftrace", "pb"] {
        let names = ["", ".gz", ".zst"].map(|packing| format!("a.{extension}{packing}"));
        let mut arguments = vec!["convert", example];
        names.iter().for_each(|name| arguments.extend(["-o", name]));
        place.run(&arguments).succeeded();
        let [plain, gz, zst] = names.each_ref().map(|name| unpacked(&place.path(name)));
        assert!(plain == gz && plain == zst && !plain.is_empty(), "{extension}");
        let bytes = names.map(|name| fs::metadata(place.path(&name)).unwrap().len());
        assert!(bytes[1] < bytes[0] && bytes[2] < bytes[0], "{extension} {bytes:?}");
    }
    let summary = |name: &str| place.run(&["report", name]).succeeded().out.replace(name, "");
    let expected = summary("a.json");
    assert_eq!([summary("a.json.gz"), summary("a.json.zst")], [&*expected, &*expected]);
}

/// The files in all folders of a directory, with their contents.
fn files_of(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries(directory).flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let mut files: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn tables_of_recordings_are_added_and_replaced() {
    let place = Place::new();
    let (example, recording) = (example(), recording());
    let [example, recording] = [&example, &recording].map(|file| file.to_str().unwrap());
    place.run(&["convert", example, recording, "--to", "parquet", "-o", "tables"]).succeeded();
    let directory = place.path("tables");
    let both = files_of(&directory);
    assert_eq!(both.len(), 16, "eight tables of two recordings");
    let is_parquet = |bytes: &[u8]| bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1");
    assert!(both.iter().all(|(_, bytes)| is_parquet(bytes)));
    // The same again changes nothing, and nothing tells where the files are.
    place.run(&["convert", example, "--to", "parquet", "-o", "tables"]).succeeded();
    assert!(files_of(&directory) == both);
    let folder = Path::new(recording).parent().unwrap().to_str().unwrap().as_bytes();
    let has_folder = |bytes: &[u8]| bytes.windows(folder.len()).any(|part| part == folder);
    assert!(both.iter().all(|(_, bytes)| !has_folder(bytes)));
    // A part is a recording of its own.
    place
        .run(&["convert", recording, "--phase", "tg", "--to", "parquet", "-o", "tables"])
        .succeeded();
    assert_eq!(files_of(&directory).len(), 24);
    // A directory is a list of its recordings.
    fs::create_dir(place.path("many")).unwrap();
    fs::copy(recording, place.path("many/a.ggprof.gz")).unwrap();
    place.run(&["convert", "many", "--to", "parquet", "-o", "of-many"]).succeeded();
    assert_eq!(files_of(&place.path("of-many")).len(), 8);
    // The table of events alone.
    place.run(&["convert", example, "-o", "events.parquet"]).succeeded();
    assert!(is_parquet(&fs::read(place.path("events.parquet")).unwrap()));
}

#[test]
fn one_of_many_that_cannot_be_read_does_not_keep_the_others_from_being_written() {
    let place = Place::new();
    fs::create_dir(place.path("many")).unwrap();
    place.file("many/a.ggprof", "no recording");
    fs::copy(recording(), place.path("many/b.ggprof.gz")).unwrap();
    let ran = place.run(&["convert", "many", "--to", "parquet", "-o", "tables"]);
    assert_eq!((ran.code, files_of(&place.path("tables")).len()), (Some(3), 8), "{ran:?}");
    expect![[r#"
        ggprof: warning: many/a.ggprof is no recording: at byte 0 stands `no recording`, which does not belong there. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
    "#]].assert_eq(&ran.err);
    // None of them is a failure.
    place.file("many/b.ggprof.gz", "no recording");
    place.run(&["convert", "many", "--to", "parquet", "-o", "none"]).failed_with_a_sentence();
}

#[test]
fn tables_that_cannot_be_written() {
    let place = Place::new();
    let example = example();
    let example = example.to_str().unwrap();
    let refused = place.run(&["convert", example, example, "-o", "a.json"]);
    expect![[r#"
        ggprof: Several recordings do not fit into one file. Write tables: --to parquet -o DIR; or put processes that ran at the same time on one axis: ggprof merge.
    "#]]
    .assert_eq(&refused.err);
    let refused = place.run(&["convert", example, "--to", "parquet", "-o", "no/tables"]);
    expect![[r#"
        ggprof: no/tables cannot be written: its directory does not exist. Create it first.
    "#]]
    .assert_eq(&refused.err);
    fs::write(place.path("file"), "").unwrap();
    let refused = place.run(&["convert", example, "--to", "parquet", "-o", "file"]);
    expect![[r#"
        ggprof: file cannot be written: a part of its path is a file. Check the path.
    "#]]
    .assert_eq(&refused.err);
    let refused = place.run(&["convert", example, "-o", "a.parquet.gz"]);
    expect![[r#"
        error: invalid value 'a.parquet.gz' for '--output <FILE>': a .parquet is compressed inside, and readers want it as it is. Leave .gz away

        For more information, try '--help'.
    "#]].assert_eq(&refused.err);
}

#[test]
fn a_recording_is_copied_as_it_is_or_not_at_all() {
    let place = Place::new();
    let recording = recording();
    let original = unpacked(&recording);
    let file = recording.to_str().unwrap();
    let outputs = ["a.ggprof", "a.ggprof.gz", "a.ggprof.zst"];
    for name in outputs {
        place.run(&["convert", file, "-o", name]).succeeded();
        assert!(unpacked(&place.path(name)) == original, "{name}");
        place.run(&["report", name]).succeeded();
    }
    place.run(&["convert", "a.ggprof.zst", "-o", "b.ggprof"]).succeeded();
    assert!(fs::read(place.path("b.ggprof")).unwrap() == original);
    place.file("p.json", profile(&[RECORD]));
    let mut sentences = String::new();
    for arguments in [
        &["convert", "p.json", "-o", "a.ggprof"][..],
        &["convert", "a.ggprof", "--phase", "tg", "-o", "c.ggprof"],
        &["convert", "-", "-o", "c.ggprof"],
    ] {
        let ran = place.run(arguments);
        ran.failed_with_a_sentence();
        sentences.push_str(&ran.err);
    }
    assert!(fs::read(place.path("a.ggprof")).unwrap() == original);
    assert!(!place.names().contains(&"c.ggprof".to_owned()));
    expect![[r#"
        ggprof: a.ggprof would be a recording, and p.json is none: a recording cannot be made from another format. Write .json.
        ggprof: c.ggprof would be a recording, which is only copied whole. Write a part as .json.
        ggprof: c.ggprof would be a recording, which is only copied from a file. Name the file.
    "#]].assert_eq(&sentences);
}

#[test]
fn what_is_read_is_not_written_over() {
    let place = Place::new();
    let json = profile(&[RECORD]);
    place.file("p.json", &json);
    place.file("q.json", &json);
    std::os::unix::fs::symlink("p.json", place.path("link.json")).unwrap();
    fs::create_dir(place.path("d")).unwrap();
    for arguments in [
        &["convert", "p.json", "-o", "./p.json"][..],
        &["convert", "p.json", "-o", "link.json"],
        &["convert", "link.json", "-o", "d/../p.json"],
        &["report", "p.json", "-o", "p.json"],
        &["report", "p.json", "--chrome-trace", "p.json"],
        &["report", "q.json", "--issue", "--since", "p.json", "-o", "p.json"],
        &["explain", "p.json", "--format", "json", "-o", "p.json"],
        &["diff", "q.json", "p.json", "-o", "p.json"],
        &["report", "q.json", "--peaks", "p.json", "-o", "p.json"],
        &["explain", "q.json", "--peaks", "p.json", "-o", "p.json"],
        &["diff", "q.json", "q.json", "--peaks", "p.json", "-o", "p.json"],
        &["convert", "q.json", "--peaks", "p.json", "-o", "p.json"],
    ] {
        let ran = place.run(arguments);
        ran.failed_with_a_sentence();
        let said = ran.err.contains("is read here, and stays.");
        assert!(said, "{arguments:?} {}", ran.err);
    }
    assert_eq!(fs::read_to_string(place.path("p.json")).unwrap(), json);
    let recording = recording();
    fs::copy(&recording, place.path("x.ggprof")).unwrap();
    place.run(&["convert", "x.ggprof", "-o", "x.ggprof"]).failed_with_a_sentence();
    assert!(fs::read(place.path("x.ggprof")).unwrap() == fs::read(recording).unwrap());
}

#[test]
fn names_that_say_nothing_are_refused_before_anything_happens() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    let mut sentences = String::new();
    for arguments in [
        &["convert", "p.json", "-o", "a.parq"][..],
        &["convert", "p.json", "-o", "a.json", "-o", "a.json.xz"],
        &["report", "p.json", "-o", "a.docx"],
        &["report", "p.json", "-o", "a.html"],
        &["report", "p.json", "--chrome-trace", "a.csv"],
        &["report", "p.json", "--html-viewer", "a.json.gz"],
        &["run", "-o", "a.parq", "--", "touch", "ran"],
        &["run", "--html", "a.csv", "--", "touch", "ran"],
        &["ctl", "snapshot", "-o", "a.parq"],
        &["peaks", "-o", "a.csv"],
        &["peaks", "-o", "a.json.gz"],
    ] {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
        sentences.push_str(ran.err.lines().next().unwrap());
        sentences.push('\n');
    }
    for (arguments, variable) in [
        // ggprof itself counts as a program of ggml: it has the names of ggml's libraries inside.
        (&["run", "--", GGPROF, "--profile-output", "a.parq"][..], ""),
        (&["run", "--", "touch", "ran"], "a.parq"),
        (&["run", "-o", "missing/a.json", "--", "touch", "ran"], ""),
        (&["run", "--metrics-file", "missing/m", "--", "touch", "ran"], ""),
        (&["run", "-o", ".", "--", "touch", "ran"], ""),
        (&["run", "-o", "nodir/", "--", "touch", "ran"], ""),
        (&["run", "-o", "", "--", "touch", "ran"], ""),
        (&["run", "--html", "nodir/", "--", "touch", "ran"], ""),
        (&["run", "--metrics-file", "nodir/.", "--", "touch", "ran"], ""),
        (&["run", "--", "touch", "ran"], "nodir/"),
        (&["run", "-o", "a.html", "--html", "./a.html", "--", "touch", "ran"], ""),
        (&["convert", "p.json", "-o", "a.json", "-o", "a.json"], ""),
        (&["convert", "p.json", "-o", "-", "-o", "-"], ""),
        (&["diff", "p.json", "p.json", "--html", "-"], ""),
        (&["report", "p.json", "-o", "a", "--html-viewer", "a"], ""),
        (&["index", ".", "--html", "-"], ""),
        (&["index", ".", "-o", "a", "--html", "./a"], ""),
        (&["bench", "--baseline", "p.json/known", "--", "touch", "ran"], ""),
        (&["bench", "--baseline", "/proc/known", "--", "touch", "ran"], ""),
        (&["ctl", "snapshot", "-o", "missing/a.json"], ""),
        (&["bench", "-o", "missing/a.md", "--", "touch", "ran"], ""),
        (&["bench", "--record", "full", "--", "touch", "ran"], ""),
        (&["bench", "--record=--repeat=3", "--", "touch", "ran"], ""),
        (&["bench", "--pairs", "5", "--max-pairs", "2", "--", "touch", "ran"], ""),
        (&["report", "p.json", "--format", "json", "-o", "a.csv"], ""),
    ] {
        let ran = place.command(arguments).env("GGML_PROFILE", variable).output().unwrap();
        let ran = crate::place::Ran::of(ran);
        ran.failed_with_a_sentence();
        sentences.push_str(&ran.err);
    }
    assert_eq!(place.names(), ["p.json"]);
    expect![[r#"
        error: invalid value 'a.parq' for '--output <FILE>': ggprof writes no .parq. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet
        error: invalid value 'a.json.xz' for '--output <FILE>': ggprof writes no .xz. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet
        error: invalid value 'a.docx' for '--output <FILE>': ggprof writes no .docx. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet
        error: invalid value 'a.html' for '--output <FILE>': a report is no .html. It is printed as .json, .txt, .csv, .md; `ggprof convert` writes other formats
        error: invalid value 'a.csv' for '--chrome-trace <FILE>': this option writes .json; .csv is something else
        error: invalid value 'a.json.gz' for '--html-viewer <FILE>': this option writes .html; .json is something else
        error: invalid value 'a.parq' for '--output <FILE>': ggprof writes no .parq. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet
        error: invalid value 'a.csv' for '--html <FILE>': this option writes .html; .csv is something else
        error: invalid value 'a.parq' for '--output <FILE>': ggprof writes no .parq. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet
        error: invalid value 'a.csv' for '--output <FILE>': this option writes .json; .csv is something else
        error: invalid value 'a.json.gz' for '--output <FILE>': this file is small, and is not compressed. Name a .json
        ggprof: --profile-output a.parq: ggprof writes no .parq. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet.
        ggprof: GGML_PROFILE a.parq: ggprof writes no .parq. Its formats are .json, .txt, .csv, .md, .html, .ggprof, .pftrace, .pb, each also with .gz or .zst behind it, and .parquet.
        ggprof: missing/a.json cannot be written: its directory does not exist. Create it first.
        ggprof: missing/m cannot be written: its directory does not exist. Create it first.
        ggprof: . cannot be written: it is a directory. Name a file inside it.
        ggprof: nodir/ cannot be written: it is the name of a directory. Name a file.
        ggprof: the name of a file to write is empty. Give it a name.
        ggprof: nodir/ cannot be written: it is the name of a directory. Name a file.
        ggprof: nodir/. cannot be written: it is the name of a directory. Name a file.
        ggprof: nodir/ cannot be written: it is the name of a directory. Name a file.
        ggprof: ./a.html would be written twice. Choose another name for one of them.
        ggprof: a.json would be written twice. Choose another name for one of them.
        ggprof: standard output (-) would be written twice. Choose another name for one of them.
        ggprof: standard output (-) would be written twice. Choose another name for one of them.
        ggprof: a would be written twice. Choose another name for one of them.
        ggprof: standard output (-) would be written twice. Choose another name for one of them.
        ggprof: a would be written twice. Choose another name for one of them.
        ggprof: p.json/known cannot be written: a part of its path is a file. Check the path.
        ggprof: /proc/known cannot be written: no file can be made in its directory. Choose another place.
        ggprof: missing/a.json cannot be written: its directory does not exist. Create it first.
        ggprof: missing/a.md cannot be written: its directory does not exist. Create it first.
        ggprof: --record takes options of `ggprof run`, and full is none.
        ggprof: a run of `ggprof bench` is made once. Say --pairs 3 instead of --record=--repeat.
        ggprof: --pairs 5 are more than --max-pairs 2. Leave one of them out, or say --pairs 2.
        ggprof: --format json does not fit a.csv. Leave it out, or choose another name.
    "#]].assert_eq(&sentences);
}

#[test]
fn a_report_is_what_the_name_of_its_file_says() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    for (name, format) in
        [("a.json", "json"), ("a.csv", "csv"), ("a.md", "markdown"), ("a.txt", "table")]
    {
        place.run(&["report", "p.json", "--by", "op", "-o", name]).succeeded();
        let printed = place.run(&["report", "p.json", "--by", "op", "--format", format]);
        assert_eq!(fs::read_to_string(place.path(name)).unwrap(), printed.succeeded().out);
    }
    place.run(&["report", "p.json", "--format", "markdown", "-o", "b.txt"]).succeeded();
    let printed = place.run(&["report", "p.json", "--format", "markdown"]).succeeded();
    assert_eq!(fs::read_to_string(place.path("b.txt")).unwrap(), printed.out);
    place.run(&["report", "p.json", "--chrome-trace", "t.json.gz"]).succeeded();
    assert!(unpacked(&place.path("t.json.gz")).starts_with(b"{\"displayTimeUnit\""));
}

#[test]
fn who_may_read_a_file_stays_when_it_is_replaced() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    for before in [0o600, 0o640, 0o664] {
        place.file("a.csv", "");
        fs::set_permissions(place.path("a.csv"), Permissions::from_mode(before)).unwrap();
        place.run(&["convert", "p.json", "-o", "a.csv"]).succeeded();
        assert_eq!(mode("a.csv"), before);
    }
    place.file("new", "");
    place.run(&["convert", "p.json", "-o", "b.csv"]).succeeded();
    assert_eq!(mode("b.csv"), mode("new"), "a new file is as any other");
}
