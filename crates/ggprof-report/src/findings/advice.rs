//! What to try: the flag or the change.

use ggprof_analysis::Budget;
use ggprof_analysis::copies::TensorClass;
use ggprof_analysis::findings::{HostOp, What, WhichHostOps};
use ggprof_analysis::phases::PhaseKind;
use ggprof_analysis::placement::Reason;
use ggprof_trace::Trace;

pub(super) fn of(trace: &Trace, budget: &Budget, what: &What) -> String {
    match what {
        What::HostOps { which, ops, .. } => host_ops(trace, which, ops),
        What::ManySplits { .. } => "find the ops between the splits with `ggprof report --by op`; \
             move their weights to the device (-ngl, -ot)"
            .to_owned(),
        What::ExposedCopies { .. } => {
            "keep on the device what is copied (-ngl, -ot; -nkvo off), or \
             compute more tokens at once (-ub)"
                .to_owned()
        }
        What::SlowCopies { .. } => {
            "pinned memory: --no-mmap, and do not set GGML_CUDA_NO_PINNED".to_owned()
        }
        What::CopiedWeights { copies, .. } => {
            let is_experts = copies.iter().any(|row| row.class == TensorClass::Experts);
            let more = if is_experts { "a smaller -ncmoe" } else { "a larger -ngl" };
            match budget.kind {
                PhaseKind::Prompt => {
                    format!(
                        "{more}; -ub 2048 to copy less often; or --no-op-offload to copy nothing"
                    )
                }
                _ => format!("{more}; or --no-op-offload to copy nothing"),
            }
        }
        What::Program { .. } => {
            "cheaper sampling (fewer --samplers, no grammar), and nothing slow \
             between two tokens; `perf` shows what the program does there"
                .to_owned()
        }
        What::Barriers { threads, .. } => {
            format!("fewer threads: -t {}", (threads / 2).max(1))
        }
        What::UnequalThreads { threads, .. } => format!(
            "stop what else runs, or leave it a core: -t {}; on processors with fast and slow cores \
             only the fast ones: -t or --cpu-mask",
            threads.saturating_sub(1).max(1)
        ),
        What::TooManyThreads { processors, knee, .. } => {
            let most = knee.or(*processors).unwrap_or(1);
            format!("-t {most} (and -tb {})", processors.unwrap_or(most))
        }
        What::SmallKernels { .. } => {
            "more sequences at once (-np), a larger model, or a backend that \
             fuses more ops"
                .to_owned()
        }
        What::GraphsOff { .. } => "unset GGML_CUDA_DISABLE_GRAPHS, and build with \
             GGML_CUDA_GRAPHS=ON"
            .to_owned(),
        What::PromptAgain { .. } => {
            "keep the beginning of the prompt the same, leave cache_prompt on, \
             and send a conversation to the same slot (id_slot, -np 1); --swa-full for models with \
             a sliding window"
                .to_owned()
        }
        What::Depth { is_flash: false, .. } => "-fa on; then -ctk q8_0 -ctv q8_0".to_owned(),
        What::Depth { .. } => {
            "a smaller cache: -ctk q8_0 -ctv q8_0, or a shorter context".to_owned()
        }
        What::Draft { .. } => {
            "no draft model, fewer drafted tokens (--draft-max), or a smaller draft \
             model"
                .to_owned()
        }
        What::SlowClock { .. } => "look for limits of power and temperature (nvidia-smi -q -d \
             PERFORMANCE, the governor in /sys/devices/system/cpu)"
            .to_owned(),
        What::FirstUse { .. } => {
            "nothing, if the program runs for long: it happens once. Otherwise \
             warm up before the first request (no --no-warmup), and keep the driver's cache"
                .to_owned()
        }
        What::Bubbles { .. } => {
            "-sm row or -sm tensor, so that devices work on the same layer; one \
             device alone if the model fits (-sm none); more sequences at once (-np)"
                .to_owned()
        }
        What::SmallBatches { .. } => "-ub 512 -b 2048".to_owned(),
        What::RoundTrips { servers, .. } => {
            let fewer = if *servers > 1 { "fewer servers in --rpc, " } else { "" };
            format!(
                "{fewer}more layers in this machine's own memory (-ngl, -ts), a cable instead of \
                 wireless, or more sequences at once (-np): one round trip then serves several tokens"
            )
        }
        What::GraphSentAgain { .. } => {
            "the same newer build on all machines: since 2026 ggml sends a \
             graph once and then asks to compute it again; and do not set LLAMA_GRAPH_REUSE_DISABLE"
                .to_owned()
        }
        What::SlowServer { .. } => {
            "fewer layers for it: -ts (--tensor-split), in the order of --rpc; \
             its own recording says why it is slow (`ggprof explain` of the server alone)"
                .to_owned()
        }
    }
}

fn host_ops(trace: &Trace, which: &WhichHostOps, ops: &[HostOp]) -> String {
    let reason = ops.first().map_or(Reason::Unknown, |op| op.reason);
    match which {
        WhichHostOps::Layers { of, .. } => {
            // One more for the output.
            format!("-ngl {} (all layers), or as many more as fit", of + 1)
        }
        WhichHostOps::Experts { .. } => {
            "a smaller -ncmoe, or fewer tensors in -ot, as far as the memory goes".to_owned()
        }
        WhichHostOps::Output => "-ngl one higher: the output counts as a layer".to_owned(),
        WhichHostOps::Op { .. } => match reason {
            Reason::Unsupported => unsupported(trace, ops),
            Reason::CacheOnHost { .. } => "keep the cache on the device: no -nkvo".to_owned(),
            Reason::WeightOnHost { .. } => "leave its weight to the device (-ot)".to_owned(),
            _ => format!(
                "look at what the device does not support of {}; keep the cache on the device",
                ops.first().map_or("it", |op| trace.text(op.op))
            ),
        },
    }
}

fn unsupported(trace: &Trace, ops: &[HostOp]) -> String {
    match ops.first().map(|op| trace.text(op.op)) {
        Some("FLASH_ATTN_EXT") => {
            "a type of the cache that the device supports: -ctk f16 -ctv f16 or \
             q8_0 for both; or -fa off; or a build with GGML_CUDA_FA_ALL_QUANTS"
                .to_owned()
        }
        Some("SET_ROWS" | "CPY" | "GET_ROWS") => {
            "a type that the device supports: -ctk f16 -ctv f16".to_owned()
        }
        Some(op) => format!("a newer build, another type, or another backend: this one lacks {op}"),
        None => String::new(),
    }
}
