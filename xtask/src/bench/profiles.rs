//! Profiles of any size, as ggml's profiler would write them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Layers of the model that the profile pretends to show.
const LAYERS: u64 = 16;

/// Writes a profile of `records` records: tokens of a model with sixteen layers on a GPU,
/// the embeddings looked up on the CPU.
pub(super) fn write(path: &Path, records: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (head, total) = ("{\n  \"version\": 3,\n  \"profiler\": \"ggml\",\n", records);
    write!(out, "{head}  \"total_records\": {total},\n  \"total_ns\": 0,\n  \"backends\": [\n")?;
    writeln!(out, "    {},", backend(0, "CUDA0", 1))?;
    writeln!(out, "    {}\n  ],\n  \"records\": [", backend(1, "CPU", 0))?;
    let mut profile = Profile { out, left: records, now_ns: 385_162_000_000, noise: 1 };
    while profile.left > 0 {
        profile.token()?;
    }
    profile.out.write_all(b"\n  ]\n}\n")?;
    profile.out.flush()
}

fn backend(id: u32, name: &str, device_type: u32) -> String {
    format!(
        "{{\"id\": {id}, \"name\": \"{name}\", \"device\": \"{name}\", \"device_type\": {device_type}}}"
    )
}

/// Type number and the first two dimensions of a source.
type Source = (u32, [u64; 2]);

struct Profile<W> {
    out: W,
    left: u64,
    now_ns: u64,
    noise: u64,
}

impl<W: Write> Profile<W> {
    /// One graph run, its records in ggml's order: ops of each backend, then copies.
    fn token(&mut self) -> io::Result<()> {
        for layer in 0..LAYERS {
            let named = |name: &str| format!("{name}-{layer}");
            self.op("MUL_MAT", &named("Qcur"), [2048, 1], &[(2, [2048, 2048]), (0, [2048, 1])])?;
            self.op("ROPE", &named("Qcur"), [64, 32], &[(0, [64, 32]), (26, [1, 1])])?;
            self.op("MUL_MAT", &named("Kcur"), [512, 1], &[(2, [2048, 512]), (0, [2048, 1])])?;
            let cache = format!("cache_v_l{layer} (view)");
            self.op(
                "SET_ROWS",
                &cache,
                [512, 256],
                &[(0, [512, 1]), (27, [1, 1]), (1, [512, 256])],
            )?;
            let node = format!("node_{}", 21 + 31 * layer);
            let attention = [(0, [64, 32]), (1, [64, 256]), (1, [64, 256]), (1, [256, 1])];
            self.op("FLASH_ATTN_EXT", &node, [64, 32], &attention)?;
            self.op("ADD", &named("ffn_inp"), [2048, 1], &[(0, [2048, 1]), (0, [2048, 1])])?;
        }
        self.op("MUL_MAT", "result_output", [32000, 1], &[(2, [2048, 32000]), (0, [2048, 1])])?;
        for name in ["embd", "leaf_5", "leaf_8"] {
            self.record(1, "copy_H2D", name, [0, 0], &[(0, [2048, 1])])?;
        }
        Ok(())
    }

    fn op(&mut self, op: &str, tensor: &str, ne: [u64; 2], sources: &[Source]) -> io::Result<()> {
        self.record(0, op, tensor, ne, sources)
    }

    fn record(
        &mut self,
        kind: u32,
        name: &str,
        tensor: &str,
        ne: [u64; 2],
        sources: &[Source],
    ) -> io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (start_ns, duration_ns) = (self.now_ns, 3000 + (self.noise >> 52));
        self.now_ns += duration_ns + 800;
        let (extra, out_type) =
            if kind == 1 { (format!("\"{tensor}\""), -1) } else { ("null".into(), 0) };
        let list = |text: &dyn Fn(&Source) -> String| {
            sources.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        let dims = |ne: [u64; 2], rest: u64| format!("[{}, {}, {rest}, {rest}]", ne[0], ne[1]);
        write!(
            self.out,
            "    {{\"type\": {kind}, \"name\": \"{name}\", \"backend_id\": 0, \"split_id\": 1, \
             \"start_ns\": {start_ns}, \"duration_ns\": {duration_ns}, \"bytes\": {bytes}, \
             \"extra\": {extra}, \"tensor_name\": \"{tensor}\", \"ne\": {ne}, \"out_type\": {out_type}, \
             \"n_src\": {n_src}, \"ne_src\": [{ne_src}], \"nb_src\": [{nb_src}], \"type_src\": [{types}], \
             \"op_params\": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], \"sub_op\": -1}}{end}",
            bytes = 4 * ne[0].max(1) * ne[1].max(1),
            ne = dims(ne, u64::from(kind == 0)),
            n_src = sources.len(),
            ne_src = list(&|(_, ne)| dims(*ne, 1)),
            nb_src = list(&|(_, ne)| format!("[4, {0}, {1}, {1}]", 4 * ne[0], 4 * ne[0] * ne[1])),
            types = list(&|(type_id, _)| type_id.to_string()),
            end = if self.left > 0 { ",\n" } else { "" },
        )
    }
}
