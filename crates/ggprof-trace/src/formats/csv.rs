//! Comma-separated values: one line per event, for spreadsheets and data frames.

use crate::model::{Event, Trace, shape_text};
use std::io::{self, Write};

const HEADER: &str = "type,op,sub_op,fusion,tensor,backend_id,backend,split_id,graph_run,\
start_ns,duration_ns,bytes,output,sources,measured,threads,busy_sum_ns,busy_max_ns,wait_sum_ns,\
charged_ns,kernels";

/// Writes all events of `trace` to `out`, which should be buffered.
pub fn write(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let mut descriptions: Vec<Option<[String; 2]>> = vec![None; trace.nodes.len()];
    for event in trace.events.iter() {
        let [before, after] =
            descriptions[event.node.0 as usize].get_or_insert_with(|| describe(trace, &event));
        let backend = trace.backend(event.backend);
        write!(out, "{},{before},{},", event.kind.name(), backend.id)?;
        write!(out, "{},{},", field(&backend.name), event.split)?;
        if let Some(run) = event.graph_run {
            write!(out, "{}", trace.run_number(run))?;
        }
        write!(out, ",{},{},{},{after},", event.start_ns, event.duration_ns, event.bytes)?;
        write!(out, "{},", event.measured.name())?;
        match trace.events.threads(event.id) {
            Some(fold) => write!(
                out,
                "{},{},{},{}",
                fold.threads, fold.busy_sum_ns, fold.busy_max_ns, fold.wait_sum_ns
            )?,
            None => write!(out, ",,,")?,
        }
        let kernels: Vec<&str> =
            trace.work_for(event.id).iter().map(|work| trace.text(work.name)).collect();
        writeln!(out, ",{},{}", event.charged_ns, field(&kernels.join(" ")))?;
    }
    Ok(())
}

/// The fields that describe a node: those before the backend, and those after the sizes.
fn describe(trace: &Trace, event: &Event) -> [String; 2] {
    let signature = trace.signature(event.node);
    let text = |id: Option<_>| id.map_or(String::new(), |id| field(trace.text(id)));
    let op = field(trace.text(signature.op));
    let fusion = if event.is_op() { text(signature.extra) } else { String::new() };
    let tensor = field(trace.tensor_name(event.node).unwrap_or_default());
    let output = shape_text::tensor(&signature.output, &trace.types);
    let sources = shape_text::sources(signature, &trace.types);
    [
        format!("{op},{},{fusion},{tensor}", text(signature.sub_op_name)),
        format!("{},{}", field(&output), field(&sources)),
    ]
}

/// Text as a field: quoted where it must be, and never taken for a formula.
///
/// A spreadsheet runs a field that begins with one of `=+-@`; names come from model files
/// that strangers made, so such a field gets an apostrophe, which spreadsheets hide.
pub fn field(text: &str) -> String {
    let harmless = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{harmless}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{harmless}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_fixture;
    use expect_test::expect;

    #[test]
    fn fields() {
        for (text, expected) in [
            ("Qcur-0", "Qcur-0"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=cmd()", "'=cmd()"),
            ("-1,x", "\"'-1,x\""),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(field(text), expected);
        }
    }

    #[test]
    fn events() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU MUL_MAT 10..30 Qcur-0 f32[8,2] <- q4_0[32,8] f32[32,2] bytes=64 measured=device
             op GPU RMS_NORM 30..35 norm-0 fused=RMS_NORM+MUL split=1
             copy GPU H2D 0..10 8 @x fused=embd <- f32[2]",
        );
        let mut csv = Vec::new();
        write(&trace, &mut csv).unwrap();
        expect![[r#"
            type,op,sub_op,fusion,tensor,backend_id,backend,split_id,graph_run,start_ns,duration_ns,bytes,output,sources,measured,threads,busy_sum_ns,busy_max_ns,wait_sum_ns,charged_ns,kernels
            OP,MUL_MAT,,,Qcur-0,0,GPU,0,1,10,20,64,"[8, 2] f32","[32, 8] q4_0 x [32, 2] f32",device,,,,,20,
            OP,RMS_NORM,,RMS_NORM+MUL,norm-0,0,GPU,1,1,30,5,0,,,unknown,,,,,5,
            COPY,copy_H2D,,,'@x,0,GPU,0,1,0,10,8,,[2] f32,unknown,,,,,10,
        "#]].assert_eq(&String::from_utf8(csv).unwrap());
    }
}
