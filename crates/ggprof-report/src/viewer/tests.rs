//! What a page may and may not contain.

use super::*;
use flate2::read::ZlibDecoder;
use ggprof_trace::text_fixture;
use std::io::Read;

const HOSTILE: &str = "</script><img>'\"&";

fn page(trace: &Trace, name: &str) -> String {
    let mut page = Vec::new();
    write(trace, name, None, Some(3), &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// The tables inside a page and the bytes behind them.
fn unpacked(page: &str) -> (serde_json::Value, Vec<u8>) {
    let (_, rest) = page.split_once("id=\"recording\">").unwrap();
    let packed = BASE64_STANDARD.decode(rest.split_once("</script>").unwrap().0).unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let columns = bytes.split_off(4 + length);
    (serde_json::from_slice(&bytes[4..]).unwrap(), columns)
}

#[test]
fn hostile_names_stay_data() {
    let trace = text_fixture::parse(&format!("backend 0 CPU cpu\nop CPU MUL_MAT 0..5 {HOSTILE}"));
    let page = page(&trace, HOSTILE);
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script").count(), 2, "only our own two");
    assert!(page.contains("&lt;/script&gt;&lt;img&gt;'&quot;&amp;"));
    assert_eq!(unpacked(&page).0["title"], HOSTILE);
}

#[test]
fn only_our_script_may_run() {
    let page = page(&text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..5"), "x");
    let (_, policy) = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"").unwrap();
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for unsafe_way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!page.contains(unsafe_way), "{unsafe_way}");
    }
}

#[test]
fn the_page_holds_what_devices_did() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         run 5..40
         op GPU GET_ROWS 10..10 e run=0 f32[8,3] <- f32[8,9] i32[3]
         op GPU MUL_MAT 10..30 a run=0 f32[8,3] <- f32[8,8] f32[8,3]
         kernel quantize 10..14 stream=2
         kernel mul_mat 16..30 stream=2 concurrent",
    );
    let (tables, bytes) = unpacked(&page(&trace, "x"));
    assert_eq!(tables["kernels"], serde_json::json!(["quantize", "mul_mat"]));
    // A graph run begins before its first op, and the page with it.
    assert_eq!(tables["runs"]["start"], serde_json::json!([0]));
    assert_eq!(tables["runs"]["tokens"], serde_json::json!([3]));
    assert_eq!(tables["runs"]["done"], serde_json::json!([35]));
    let column = |name: &str| first_bytes(&tables, &bytes, name);
    assert_eq!(column("work_stream"), [2, 2]);
    assert_eq!(column("work_duration"), [4, 14]);
    assert_eq!(column("work_flags"), [0, 1]);
    assert_eq!(column("uncharged"), [0, 2], "nothing is done between the kernels");
}

/// The lowest bytes of a column, which are all of a small number.
fn first_bytes(tables: &serde_json::Value, bytes: &[u8], wanted: &str) -> Vec<u8> {
    let number = |column: &serde_json::Value, key| column[key].as_u64().unwrap() as usize;
    let mut at = 0;
    for column in tables["columns"].as_array().unwrap() {
        let length = number(column, "length");
        if column["name"] == wanted {
            return bytes[at..at + length].to_vec();
        }
        at += length * number(column, "width");
    }
    panic!("no column {wanted}");
}

#[test]
fn the_page_holds_every_event() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu\nop CPU ADD 5..7 a\nop CPU MUL_MAT 0..5 b\nop CPU ADD 7..9 c",
    );
    let (tables, columns) = unpacked(&page(&trace, "x"));
    let described = tables["columns"].as_array().unwrap();
    let number = |column: &serde_json::Value, key| column[key].as_u64().unwrap() as usize;
    let starts = described.iter().find(|column| column["name"] == "start").unwrap();
    assert_eq!(number(starts, "length"), 3);
    let bytes: usize =
        described.iter().map(|column| number(column, "length") * number(column, "width")).sum();
    assert_eq!(bytes, columns.len());
    assert_eq!(tables["drawn"], 3);
}
