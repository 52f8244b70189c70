//! Kernels that are small beside what it takes to launch them.

use super::{InWords, Told, time};
use ggprof_analysis::findings::{GraphsOff, SmallKernels, WhyNoGraphs};

impl InWords for SmallKernels {
    fn sentence(&self, told: &Told<'_>) -> String {
        format!("{} waits for the host between small kernels", told.label(self.backend))
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} kernels a graph run, {} each, {} between two",
            self.kernels_per_run,
            time(self.kernel_ns),
            time(self.gap_ns)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "more sequences at once (-np), a larger model, or a backend that fuses more ops".to_owned()
    }
}

impl InWords for GraphsOff {
    fn sentence(&self, told: &Told<'_>) -> String {
        let device = told.label(self.backend);
        format!("{device} runs without CUDA graphs and waits for each launch")
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let why = match self.why {
            WhyNoGraphs::SwitchedOff => "; GGML_CUDA_DISABLE_GRAPHS is set".to_owned(),
            WhyNoGraphs::Experts { tokens } => format!(
                "; MUL_MAT_ID of {tokens} tokens at once may wait for the device, which no CUDA graph can"
            ),
            WhyNoGraphs::Unknown => String::new(),
        };
        format!(
            "{} kernels a graph run with {} between two; in a CUDA graph it is one microsecond{why}",
            self.kernels_per_run,
            time(self.gap_ns)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        match self.why {
            WhyNoGraphs::SwitchedOff => "unset GGML_CUDA_DISABLE_GRAPHS",
            WhyNoGraphs::Experts { .. } => {
                "experts of a quantised type, fewer tokens at once, or a newer build; look also at \
                 GGML_CUDA_DISABLE_GRAPHS"
            }
            WhyNoGraphs::Unknown => {
                "unset GGML_CUDA_DISABLE_GRAPHS, and build with GGML_CUDA_GRAPHS=ON"
            }
        }
        .to_owned()
    }
}
