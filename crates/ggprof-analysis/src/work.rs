//! The work an op does: floating point operations, and bytes it reads and writes.
//!
//! It is counted from shapes and types, so it is the least that the op has to do: a source counts
//! once, however often a kernel reads it. An addition, a multiplication and a transcendental
//! function count as one operation each. What cannot be counted is `None`.
//!
//! A fusion does the work of all its nodes, but what one node computes for another is neither
//! written nor read, unless others need it as well.

use ggprof_ggml::{Touched, computes, is_matrix_product, touched};
use ggprof_trace::{Member, Origin, Signature, Tensor, Trace, TypeTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    pub flops: Option<u64>,
    pub bytes_read: Option<u64>,
    pub bytes_written: Option<u64>,
}

impl Work {
    const NOTHING: Self = Self { flops: Some(0), bytes_read: Some(0), bytes_written: Some(0) };

    pub fn bytes_moved(&self) -> Option<u64> {
        self.bytes_read?.checked_add(self.bytes_written?)
    }
}

/// The work of one call with this signature.
pub fn work_of(trace: &Trace, signature: &Signature) -> Work {
    if !signature.members.is_empty() {
        return work_of_fusion(trace, &signature.members);
    }
    let name = trace.text(signature.op);
    // The name of a fusion without its members does not tell what they read and write.
    if signature.extra.is_some() && signature.copied.is_none() {
        return Work::default();
    }
    work_of_op(&Op { name, signature, types: &trace.types, reads: None })
}

fn work_of_op(op: &Op<'_>) -> Work {
    match op.name {
        name if !computes(name) => Work::NOTHING,
        // Its tensors are those of two ops among many.
        Signature::WHOLE_SPLIT => Work::default(),
        _ if op.signature.output.elements() == Some(0) => Work::NOTHING,
        _ => Work {
            flops: op.flops(),
            bytes_read: op.bytes_read(),
            bytes_written: op.bytes_written(),
        },
    }
}

fn work_of_fusion(trace: &Trace, members: &[Member]) -> Work {
    let mut seen: Vec<Origin> = Vec::new();
    members.iter().fold(Work::NOTHING, |sum, member| {
        let signature = trace.nodes.signature(member.signature);
        let mut is_first = |origin: &Origin| {
            let is_new = matches!(origin, Origin::Outside(_)) && !seen.contains(origin);
            seen.push(*origin);
            is_new
        };
        let reads: Vec<bool> = member.origins.iter().map(&mut is_first).collect();
        let name = trace.text(signature.op);
        let work = work_of_op(&Op { name, signature, types: &trace.types, reads: Some(&reads) });
        let written = if member.is_stored { work.bytes_written } else { Some(0) };
        Work {
            flops: add(sum.flops, work.flops),
            bytes_read: add(sum.bytes_read, work.bytes_read),
            bytes_written: add(sum.bytes_written, written),
        }
    })
}

fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one?.checked_add(other?)
}

struct Op<'a> {
    name: &'a str,
    signature: &'a Signature,
    types: &'a TypeTable,
    /// Which sources it reads from memory; all of them if it is alone.
    reads: Option<&'a [bool]>,
}

impl Op<'_> {
    fn source(&self, at: usize) -> Option<&Tensor> {
        self.signature
            .sources
            .get(at)
            .map(|source| &source.tensor)
            .filter(|tensor| tensor.is_known())
    }

    /// The output; older recordings lack it, but a matrix product's follows from its sources.
    fn output(&self) -> Option<Tensor> {
        if self.signature.output.is_known() {
            return Some(self.signature.output);
        }
        if self.name != "MUL_MAT" {
            return None;
        }
        let (a, b) = (self.source(0)?, self.source(1)?);
        Some(Tensor { type_id: -1, ne: [a.ne[1], b.ne[1], b.ne[2], b.ne[3]] })
    }

    fn flops(&self) -> Option<u64> {
        let output = self.output().and_then(|output| output.elements());
        match self.name {
            op if is_matrix_product(op) => product(&[2, self.length(0, 0)?, output?]),
            "OUT_PROD" => product(&[2, self.length(0, 1)?, output?]),
            "FLASH_ATTN_EXT" => self.attention_flops(),
            "CONV_2D" => {
                let kernel = [self.length(0, 0)?, self.length(0, 1)?, self.length(0, 2)?];
                product(&[2, kernel[0], kernel[1], kernel[2], output?])
            }
            "CONV_2D_DW" => product(&[2, self.length(0, 0)?, self.length(0, 1)?, output?]),
            "SUM" | "SUM_ROWS" | "MEAN" | "CUMSUM" => self.source(0)?.elements(),
            name => product(&[flops_per_element(name)?, output?]),
        }
    }

    /// Scores of every query with every key, and the weighted sum of the values.
    fn attention_flops(&self) -> Option<u64> {
        let queries = product(&[self.length(0, 1)?, self.length(0, 2)?, self.length(0, 3)?])?;
        let depth = self.length(0, 0)?.checked_add(self.length(2, 0)?)?;
        product(&[2, queries, self.length(1, 1)?, depth])
    }

    /// Length of source `at` along `dimension`.
    fn length(&self, at: usize, dimension: usize) -> Option<u64> {
        u64::try_from(self.source(at)?.ne[dimension]).ok()
    }

    fn bytes_read(&self) -> Option<u64> {
        match touched(self.name) {
            Touched::RowsOfTheOutput => {
                let rows = Tensor { type_id: self.source(0)?.type_id, ne: self.output()?.ne };
                let rows = if self.reads(0) { self.types.bytes_of(&rows)? } else { 0 };
                rows.checked_add(self.source_bytes(1)?)
            }
            Touched::RowsOfTheFirstSource => {
                self.source_bytes(0)?.checked_add(self.source_bytes(1)?)
            }
            Touched::AllButTheTarget => self.source_bytes(0),
            Touched::SelectedMatrices => {
                let rest = self.source_bytes(1)?.checked_add(self.source_bytes(2)?)?;
                self.expert_bytes()?.checked_add(rest)
            }
            Touched::All => (0..self.signature.sources.len())
                .try_fold(0u64, |sum, at| sum.checked_add(self.source_bytes(at)?)),
        }
    }

    fn bytes_written(&self) -> Option<u64> {
        match touched(self.name) {
            Touched::RowsOfTheFirstSource => {
                let type_id = self.signature.output.type_id;
                self.types.bytes_of(&Tensor { type_id, ne: self.source(0)?.ne })
            }
            _ => self.types.bytes_of(&self.output()?),
        }
    }

    /// What is read of a source; a place that ggml left empty has nothing.
    fn source_bytes(&self, at: usize) -> Option<u64> {
        let tensor = &self.signature.sources.get(at)?.tensor;
        let is_nothing = *tensor == Tensor::UNKNOWN || !self.reads(at);
        if is_nothing { Some(0) } else { self.types.bytes_of(tensor) }
    }

    fn reads(&self, at: usize) -> bool {
        self.reads.is_none_or(|reads| reads.get(at).copied().unwrap_or(true))
    }

    /// Weights of the experts that are selected: exact for one token; for a batch at most
    /// this, because its tokens may select the same ones.
    fn expert_bytes(&self) -> Option<u64> {
        let experts = self.length(0, 2)?;
        let selected = product(&[self.length(2, 0)?, self.length(2, 1)?])?.min(experts);
        self.source_bytes(0)?.checked_div(experts)?.checked_mul(selected)
    }
}

fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor))
}

/// Operations per element of the output, for ops that treat elements alike.
fn flops_per_element(op: &str) -> Option<u64> {
    Some(match op {
        "CPY" | "CONT" | "DUP" | "GET_ROWS" | "SET_ROWS" | "REPEAT" | "CONCAT" | "PAD"
        | "IM2COL" | "FILL" | "ARANGE" | "SET" | "ARGSORT" | "TOP_K" | "ARGMAX"
        | "DIAG_MASK_INF" | "DIAG_MASK_ZERO" | "ROLL" | "TRI" | "DIAG" => 0,
        "ADD" | "ADD1" | "ADD_ID" | "ACC" | "SUB" | "MUL" | "DIV" | "SQR" | "SQRT" | "LOG"
        | "SIN" | "COS" | "SCALE" | "CLAMP" | "LEAKY_RELU" | "UNARY" => 1,
        // Activation and product.
        "GLU" => 2,
        // Square, sum, scale; rotation of pairs.
        "RMS_NORM" | "L2_NORM" | "ROPE" => 3,
        // Difference, exponential, sum, quotient.
        "SOFT_MAX" => 4,
        // Mean, difference, square, sum, scale.
        "NORM" | "GROUP_NORM" => 5,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[track_caller]
    fn check(op: &str, flops: Option<u64>, read: Option<u64>, written: Option<u64>) {
        let mut words = op.splitn(2, ' ');
        let (name, tensors) = (words.next().unwrap(), words.next().unwrap_or(""));
        let trace =
            text_fixture::parse(&format!("backend 0 CPU cpu\nop CPU {name} 0..1 {tensors}"));
        let event = trace.events.iter().next().unwrap();
        let work = work_of(&trace, trace.signature(event.node));
        let expected = Work { flops, bytes_read: read, bytes_written: written };
        assert_eq!(work, expected, "{op}");
    }

    #[test]
    fn matrix_products() {
        let weights = 2048 * 512 / 32 * 18;
        check(
            "MUL_MAT f32[512,7] <- q4_0[2048,512] f32[2048,7]",
            Some(2 * 2048 * 512 * 7),
            Some(weights + 2048 * 7 * 4),
            Some(512 * 7 * 4),
        );
        check(
            "OUT_PROD f32[8,4] <- f32[8,3] f32[4,3]",
            Some(2 * 3 * 8 * 4),
            Some((24 + 12) * 4),
            Some(128),
        );
    }

    #[test]
    fn an_older_recording_gives_operations_but_no_bytes() {
        let trace =
            text_fixture::parse("backend 0 CPU cpu\nop CPU MUL_MAT 0..1 <- f32[8,4] f32[8,2]");
        let event = trace.events.iter().next().unwrap();
        let mut signature = trace.signature(event.node).clone();
        for source in &mut signature.sources {
            source.tensor.type_id = -1;
        }
        let work = work_of(&trace, &signature);
        assert_eq!(
            work,
            Work { flops: Some(2 * 8 * 4 * 2), bytes_read: None, bytes_written: None }
        );
    }

    #[test]
    fn only_selected_experts_are_read() {
        let expert = 64 * 32 / 32 * 34;
        check(
            "MUL_MAT_ID f32[32,2,1] <- q8_0[64,32,8] f32[64,1,1] i32[2,1]",
            Some(2 * 64 * 32 * 2),
            Some(2 * expert + 64 * 4 + 2 * 4),
            Some(32 * 2 * 4),
        );
        // Sixteen tokens can select no more than all eight experts.
        check(
            "MUL_MAT_ID f32[32,2,16] <- q8_0[64,32,8] f32[64,1,16] i32[2,16]",
            Some(2 * 64 * 32 * 2 * 16),
            Some(8 * expert + 64 * 16 * 4 + 32 * 4),
            Some(32 * 2 * 16 * 4),
        );
    }

    #[test]
    fn rows_are_read_and_written_as_many_as_asked_for() {
        check(
            "GET_ROWS f32[64,3] <- f16[64,32000] i32[3]",
            Some(0),
            Some(64 * 3 * 2 + 12),
            Some(64 * 3 * 4),
        );
        check(
            "SET_ROWS f16[512,256] <- f32[512,1] i64[1] f16[512,256]",
            Some(0),
            Some(512 * 4 + 8),
            Some(512 * 2),
        );
        check("CPY f16[8,8] <- f32[8,8] f16[8,8]", Some(0), Some(256), Some(128));
    }

    #[test]
    fn attention() {
        check(
            "FLASH_ATTN_EXT f32[64,32,5] <- f32[64,5,32] f16[64,256,8] f16[64,256,8] f16[256,5]",
            Some(2 * 5 * 32 * 256 * 128),
            Some(64 * 5 * 32 * 4 + 2 * 64 * 256 * 8 * 2 + 256 * 5 * 2),
            Some(64 * 32 * 5 * 4),
        );
    }

    #[track_caller]
    fn check_fusion(lines: &str, flops: u64, read: u64, written: u64) {
        let trace = text_fixture::parse(&format!("backend 0 GPU gpu\n{lines}"));
        let event = trace.events.iter().next().unwrap();
        let work = work_of(&trace, trace.signature(event.node));
        let (bytes_read, bytes_written) = (Some(read), Some(written));
        assert_eq!(work, Work { flops: Some(flops), bytes_read, bytes_written }, "{lines}");
    }

    #[test]
    fn fusions_do_the_work_of_all_their_nodes() {
        check_fusion(
            "op GPU RMS_NORM 0..1 norm-0 f32[1024] <- f32[1024]
             with MUL attn_norm-0 f32[1024] <- f32[1024]@0 f32[1024]",
            3 * 1024 + 1024,
            2 * 4096,
            4096,
        );
        let weights = 2048 * 8192 / 32 * 18;
        check_fusion(
            "op GPU MUL_MAT 0..1 ffn_gate-0 f32[8192] <- q4_0[2048,8192] f32[2048]
             with MUL_MAT ffn_up-0 f32[8192] <- q4_0[2048,8192] f32[2048]#1
             with GLU ffn_swiglu-0 f32[8192] <- f32[8192]@0 f32[8192]@1",
            2 * 2 * 2048 * 8192 + 2 * 8192,
            2 * weights + 2048 * 4,
            8192 * 4,
        );
        // What is written is the row of the cache.
        check_fusion(
            "op GPU ROPE 0..1 Kcur-0 f32[64,8] <- f32[64,8] i32[1]
             with SET_ROWS cache_k_l0 f16[512,256] <- f32[512]@0 i64[1] f16[512,256]",
            3 * 512,
            512 * 4 + 4 + 8,
            512 * 2,
        );
        // The sum is needed later on.
        check_fusion(
            "op GPU MUL 0..1 a f32[64] <- f32[64] f32[64]
             with ADD ffn_inp-0 f32[64] <- f32[64]@0 f32[64] stored
             with RMS_NORM norm-0 f32[64] <- f32[64]@1",
            64 + 64 + 3 * 64,
            3 * 256,
            2 * 256,
        );
    }

    #[test]
    fn of_a_fusion_without_members_nothing_is_known() {
        check("MUL_MAT f32[8,4] <- f32[8,8] f32[8,4] fused=MUL_MAT+ADD", None, None, None);
    }

    #[test]
    fn empty_work_is_no_work() {
        check("MUL_MAT f32[512,0] <- q4_0[2048,512] f32[2048,0]", Some(0), Some(0), Some(0));
        check("GET_ROWS f32[64,0] <- f16[64,32000] i32[0]", Some(0), Some(0), Some(0));
        check("SET_ROWS f16[512,256] <- f32[512,0] i64[0] f16[512,256]", Some(0), Some(0), Some(0));
        check("SSM_SCAN f32[4,0] <- f32[4]", Some(0), Some(0), Some(0));
    }

    #[test]
    fn the_rest() {
        check("ADD f32[4] <- f32[4] f32[4]", Some(4), Some(32), Some(16));
        check("VIEW f32[4] <- f32[8]", Some(0), Some(0), Some(0));
        check("SSM_SCAN f32[4] <- f32[4]", None, Some(16), Some(16));
        check("SUM f32[1] <- f32[100]", Some(100), Some(400), Some(4));
        check("ADD", None, Some(0), None);
    }

    #[test]
    fn absurd_shapes_count_as_unknown() {
        let huge = i64::MAX;
        check(
            &format!("MUL_MAT f32[{huge},{huge}] <- f32[{huge},{huge}] f32[{huge}]"),
            None,
            None,
            None,
        );
    }
}
