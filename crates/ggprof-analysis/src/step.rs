//! What is known of one step: a batch that the program handed to libllama, or a graph run.

use ggprof_trace::ProcessIndex;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    Prompt,
    Generation,
    /// Some sequences generate while others have their prompts read.
    Mixed,
    /// Embeddings, or the encoder of a model.
    Encoding,
    /// A graph without tokens.
    Graph,
}

/// A batch, or a graph run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub kind: StepKind,
    /// Whether kind and tokens are guessed from shapes.
    pub is_guess: bool,
    /// It is a trial before the program's work begins.
    pub is_warm_up: bool,
    /// That is a guess: the program did not say so.
    pub is_guessed_trial: bool,
    /// A smaller model drafts tokens for another context, whose request its parts name.
    pub is_draft: bool,
    pub stream: Stream,
    /// Whose it is, in a trace that was made of several recordings.
    pub process: Option<ProcessIndex>,
    /// When the call or the graph run began.
    pub start_ns: u64,
    /// When its results were there.
    pub end_ns: u64,
    /// When the program could go on with them: later, where a smaller model reads the same batch first.
    pub ready_ns: u64,
    /// Its graph runs, by their places in the trace; none if they were left out on request.
    pub runs: Vec<u32>,
    pub tokens: Option<u64>,
    /// Empty where sequences are not known.
    pub parts: Vec<StepPart>,
    /// The memory of its context was cleared right before.
    pub is_after_clear: bool,
    /// It is the first of its context, and already a repetition: the program makes no trial.
    pub is_untried: bool,
}

/// Steps of one stream come one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// A context of libllama.
    Context(u32),
    Scheduler(u32),
}

/// What a step did for one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPart {
    /// The number of its [`Request`](crate::Request).
    pub request: u32,
    /// As the program numbers them in its context.
    pub sequence: i32,
    pub role: Role,
    /// Position of its first token.
    pub first: u64,
    pub tokens: u64,
    pub outputs: u64,
    /// Tokens without those that were drafted and turned out wrong. Where nothing tells how many were
    /// right, none of them counts.
    pub kept: u64,
    /// It is the first of its request that was recorded, but not the first that was computed.
    pub began_before: bool,
}

impl StepPart {
    /// Whether it makes a token of the one before. A prompt of a single token is the same work.
    pub(crate) fn is_one_step(&self) -> bool {
        self.role == Role::Generation || (self.tokens, self.outputs) == (1, 1)
    }

    /// Whether its tokens count as generated. The last token of a prompt whose others are there already is
    /// read; a single one with nothing before it is what benchmarks generate from.
    pub(crate) fn is_generated(&self) -> bool {
        self.role == Role::Generation || (self.is_one_step() && self.first == 0)
    }
}

impl Step {
    /// How many sequences generate a token.
    pub fn generating(&self) -> u64 {
        match self.kind {
            StepKind::Generation if self.parts.is_empty() => self.tokens.unwrap_or(0),
            _ => self.one_steps().count() as u64,
        }
    }

    /// Tokens that it made and that stayed.
    pub fn generated_tokens(&self) -> u64 {
        match self.kind {
            StepKind::Generation if self.parts.is_empty() => self.tokens.unwrap_or(0),
            _ => self.generated().map(|part| part.kept).sum(),
        }
    }

    /// Tokens that it read.
    pub fn prompt_tokens(&self) -> u64 {
        let tokens = self.tokens.unwrap_or(0);
        match self.kind {
            StepKind::Generation if self.parts.is_empty() => 0,
            _ => tokens.saturating_sub(self.generated().map(|part| part.tokens).sum()),
        }
    }

    /// Tokens without drafts that turned out wrong.
    pub fn kept_tokens(&self) -> u64 {
        let wrong = self.parts.iter().map(|part| part.tokens.saturating_sub(part.kept));
        self.tokens.unwrap_or(0).saturating_sub(wrong.sum())
    }

    /// Whether it is in the part of the recording that was asked about.
    pub fn is_inside(&self) -> bool {
        !self.runs.is_empty()
    }

    pub(crate) fn take_for_trial(&mut self) {
        self.is_guessed_trial |= !self.is_warm_up;
        self.is_warm_up = true;
    }

    fn generated(&self) -> impl Iterator<Item = &StepPart> {
        self.one_steps().filter(|part| part.is_generated())
    }

    fn one_steps(&self) -> impl Iterator<Item = &StepPart> {
        let makes_tokens = self.kind != StepKind::Encoding;
        self.parts.iter().filter(move |part| makes_tokens && part.is_one_step())
    }
}

/// What tokens of a sequence are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Prompt,
    Generation,
}
