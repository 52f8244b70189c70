//! What a page may and may not contain.

use super::*;
use flate2::read::ZlibDecoder;
use ggprof_trace::text_fixture;
use std::io::Read;

const HOSTILE: &str = "</script><img>'\"&";

fn page(trace: &Trace, name: &str) -> String {
    let mut page = Vec::new();
    write(trace, name, Some(3), &mut page).unwrap();
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
