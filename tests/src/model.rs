//! Models with random weights, of any size: what a program computes does not depend on the
//! values, and none need to be downloaded.
//!
//! Written as GGUF version 3, architecture `llama`, with a vocabulary of single bytes, which
//! every llama.cpp since 2024 loads.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::built::target_directory;

/// Sizes of a model, in llama.cpp's terms.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    pub layers: u64,
    pub embedding: u64,
    pub feed_forward: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub vocabulary: u64,
    /// How many experts a layer has, and how many of them a token uses.
    pub experts: Option<(u64, u64)>,
    /// Weights in four bits each; otherwise F32, of which much has to be moved for little to compute.
    pub is_quantized: bool,
}

impl Model {
    /// Loads and computes in no time.
    pub const TINY: Self = Self {
        layers: 4,
        embedding: 256,
        feed_forward: 512,
        heads: 8,
        kv_heads: 4,
        vocabulary: 1024,
        experts: None,
        is_quantized: true,
    };

    /// The same with experts.
    pub const TINY_EXPERTS: Self = Self { experts: Some((8, 2)), ..Self::TINY };

    /// About 110 million weights.
    pub const SMALL: Self = Self {
        layers: 12,
        embedding: 768,
        feed_forward: 2048,
        heads: 12,
        kv_heads: 12,
        vocabulary: 16_384,
        experts: None,
        is_quantized: true,
    };

    /// About 250 million weights, of which a token uses 80 million.
    pub const SMALL_EXPERTS: Self = Self {
        layers: 8,
        embedding: 512,
        feed_forward: 1024,
        heads: 8,
        kv_heads: 4,
        vocabulary: 16_384,
        experts: Some((16, 2)),
        is_quantized: true,
    };

    /// About 1.1 billion weights, 620 MB: what small models have today.
    pub const BILLION: Self = Self {
        layers: 22,
        embedding: 2048,
        feed_forward: 5632,
        heads: 32,
        kv_heads: 4,
        vocabulary: 32_000,
        experts: None,
        is_quantized: true,
    };

    /// The model as a file in the target directory, written once.
    pub fn file(&self, name: &str) -> io::Result<PathBuf> {
        static WRITING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = target_directory().join("models");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{name}.gguf"));
        if !path.is_file() {
            // Processes run side by side: each writes to a name of its own, then renames.
            let fresh = directory.join(format!("{name}.{}", std::process::id()));
            self.write(&fresh)?;
            std::fs::rename(&fresh, &path)?;
        }
        path.canonicalize()
    }

    /// Writes the model.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let tensors = self.tensors();
        let mut gguf = Gguf::default();
        self.metadata(&mut gguf);
        let mut offset = 0;
        for tensor in &tensors {
            gguf.describe(tensor, offset);
            offset += tensor.bytes().next_multiple_of(ALIGNMENT);
        }
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let head = gguf.head(tensors.len() as u64);
        out.write_all(&head)?;
        pad(&mut out, head.len() as u64)?;
        let mut noise = 0x9e37_79b9_7f4a_7c15;
        for tensor in &tensors {
            tensor.write_weights(&mut out, &mut noise)?;
            pad(&mut out, tensor.bytes())?;
        }
        out.flush()
    }

    /// What all weights take, without what lies between them.
    pub fn weight_bytes(&self) -> u64 {
        self.tensors().iter().map(Tensor::bytes).sum()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (embedding, feed_forward) = (self.embedding, self.feed_forward);
        let kv = embedding / self.heads * self.kv_heads;
        let kind = if self.is_quantized { Kind::Quantized } else { Kind::Full };
        let weights = |name: String, shape: &[u64]| Tensor { name, shape: shape.to_vec(), kind };
        let mut tensors = vec![
            weights("token_embd.weight".to_owned(), &[embedding, self.vocabulary]),
            Tensor::norm("output_norm.weight", embedding),
            weights("output.weight".to_owned(), &[embedding, self.vocabulary]),
        ];
        for layer in 0..self.layers {
            let named = |name: &str| format!("blk.{layer}.{name}.weight");
            tensors.push(Tensor::norm(named("attn_norm"), embedding));
            tensors.push(weights(named("attn_q"), &[embedding, embedding]));
            tensors.push(weights(named("attn_k"), &[embedding, kv]));
            tensors.push(weights(named("attn_v"), &[embedding, kv]));
            tensors.push(weights(named("attn_output"), &[embedding, embedding]));
            tensors.push(Tensor::norm(named("ffn_norm"), embedding));
            let (kind, experts) = match self.experts {
                None => ("", 1),
                Some((experts, _)) => {
                    tensors.push(Tensor::router(named("ffn_gate_inp"), [embedding, experts]));
                    ("_exps", experts)
                }
            };
            let mut product = |name: &str, rows: u64, columns: u64| {
                let name = named(&format!("{name}{kind}"));
                let shape = [rows, columns, experts];
                let dimensions = if experts == 1 { 2 } else { 3 };
                tensors.push(weights(name, &shape[..dimensions]));
            };
            product("ffn_gate", embedding, feed_forward);
            product("ffn_up", embedding, feed_forward);
            product("ffn_down", feed_forward, embedding);
        }
        tensors
    }

    fn metadata(&self, gguf: &mut Gguf) {
        gguf.text("general.architecture", "llama");
        gguf.text("general.name", "random weights");
        gguf.number("llama.block_count", self.layers);
        gguf.number("llama.context_length", 4096);
        gguf.number("llama.embedding_length", self.embedding);
        gguf.number("llama.feed_forward_length", self.feed_forward);
        gguf.number("llama.attention.head_count", self.heads);
        gguf.number("llama.attention.head_count_kv", self.kv_heads);
        gguf.number("llama.rope.dimension_count", self.embedding / self.heads);
        gguf.number("llama.vocab_size", self.vocabulary);
        gguf.real("llama.attention.layer_norm_rms_epsilon", 1e-5);
        if let Some((experts, used)) = self.experts {
            gguf.number("llama.expert_count", experts);
            gguf.number("llama.expert_used_count", used);
        }
        gguf.text("tokenizer.ggml.model", "llama");
        let (tokens, kinds) = self.tokens();
        gguf.texts("tokenizer.ggml.tokens", &tokens);
        gguf.reals("tokenizer.ggml.scores", tokens.len());
        gguf.integers("tokenizer.ggml.token_type", &kinds);
        gguf.number("tokenizer.ggml.unknown_token_id", 0);
        gguf.number("tokenizer.ggml.bos_token_id", 1);
        gguf.number("tokenizer.ggml.eos_token_id", 2);
    }

    /// Three special tokens, all bytes, and words that no text has.
    fn tokens(&self) -> (Vec<String>, Vec<i32>) {
        const NORMAL: i32 = 1;
        const UNKNOWN: i32 = 2;
        const CONTROL: i32 = 3;
        const BYTE: i32 = 6;
        let special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)];
        let special = special.map(|(text, kind)| (text.to_owned(), kind));
        let bytes = (0..=255).map(|byte: u8| (format!("<0x{byte:02X}>"), BYTE));
        let filler = (0..).map(|number| (format!("▁filler{number}"), NORMAL));
        special.into_iter().chain(bytes).chain(filler).take(self.vocabulary as usize).unzip()
    }
}

/// GGUF's default: tensors begin at multiples of this.
const ALIGNMENT: u64 = 32;

fn pad(out: &mut impl Write, length: u64) -> io::Result<()> {
    let zeros = [0; ALIGNMENT as usize];
    out.write_all(&zeros[..(length.next_multiple_of(ALIGNMENT) - length) as usize])
}

struct Tensor {
    name: String,
    shape: Vec<u64>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// F32, all ones.
    Norm,
    /// F32, random.
    Full,
    /// Q4_0, random.
    Quantized,
}

impl Tensor {
    fn norm(name: impl Into<String>, length: u64) -> Self {
        Self { name: name.into(), shape: vec![length], kind: Kind::Norm }
    }

    fn router(name: String, shape: [u64; 2]) -> Self {
        Self { name, shape: shape.to_vec(), kind: Kind::Full }
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Norm | Kind::Full => self.elements() * 4,
            Kind::Quantized => self.elements() / 32 * 18,
        }
    }

    fn type_id(&self) -> u32 {
        match self.kind {
            Kind::Norm | Kind::Full => 0,
            Kind::Quantized => 2,
        }
    }

    fn write_weights(&self, out: &mut impl Write, noise: &mut u64) -> io::Result<()> {
        match self.kind {
            Kind::Norm => (0..self.elements()).try_for_each(|_| out.write_all(&1f32.to_le_bytes())),
            Kind::Full => (0..self.elements()).try_for_each(|_| {
                let weight = next(noise) as f32 / u64::MAX as f32 - 0.5;
                out.write_all(&weight.to_le_bytes())
            }),
            // A block of Q4_0: its scale (0.01 as F16), then 32 numbers of four bits.
            Kind::Quantized => (0..self.elements() / 32).try_for_each(|_| {
                out.write_all(&0x211f_u16.to_le_bytes())?;
                out.write_all(&next(noise).to_le_bytes())?;
                out.write_all(&next(noise).to_le_bytes())
            }),
        }
    }
}

/// Marsaglia's xorshift: the same weights every time.
fn next(noise: &mut u64) -> u64 {
    *noise ^= *noise << 13;
    *noise ^= *noise >> 7;
    *noise ^= *noise << 17;
    *noise
}

/// The parts of a GGUF file before its weights.
#[derive(Default)]
struct Gguf {
    entries: u64,
    metadata: Vec<u8>,
    tensors: Vec<u8>,
}

/// GGUF's numbers for the types of values.
mod value {
    pub(super) const U32: u32 = 4;
    pub(super) const I32: u32 = 5;
    pub(super) const F32: u32 = 6;
    pub(super) const TEXT: u32 = 8;
    pub(super) const LIST: u32 = 9;
}

impl Gguf {
    fn head(&self, tensors: u64) -> Vec<u8> {
        let mut head = b"GGUF".to_vec();
        head.extend(3u32.to_le_bytes());
        head.extend(tensors.to_le_bytes());
        head.extend(self.entries.to_le_bytes());
        head.extend(&self.metadata);
        head.extend(&self.tensors);
        head
    }

    fn key(&mut self, key: &str, kind: u32) {
        self.entries += 1;
        put_text(&mut self.metadata, key);
        self.metadata.extend(kind.to_le_bytes());
    }

    fn list(&mut self, key: &str, kind: u32, length: usize) {
        self.key(key, value::LIST);
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend((length as u64).to_le_bytes());
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key, value::TEXT);
        put_text(&mut self.metadata, text);
    }

    fn number(&mut self, key: &str, number: u64) {
        self.key(key, value::U32);
        self.metadata.extend((number as u32).to_le_bytes());
    }

    fn real(&mut self, key: &str, number: f32) {
        self.key(key, value::F32);
        self.metadata.extend(number.to_le_bytes());
    }

    fn texts(&mut self, key: &str, texts: &[String]) {
        self.list(key, value::TEXT, texts.len());
        texts.iter().for_each(|text| put_text(&mut self.metadata, text));
    }

    /// As many zeros.
    fn reals(&mut self, key: &str, length: usize) {
        self.list(key, value::F32, length);
        (0..length).for_each(|_| self.metadata.extend(0f32.to_le_bytes()));
    }

    fn integers(&mut self, key: &str, numbers: &[i32]) {
        self.list(key, value::I32, numbers.len());
        numbers.iter().for_each(|number| self.metadata.extend(number.to_le_bytes()));
    }

    fn describe(&mut self, tensor: &Tensor, offset: u64) {
        put_text(&mut self.tensors, &tensor.name);
        self.tensors.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().for_each(|length| self.tensors.extend(length.to_le_bytes()));
        self.tensors.extend(tensor.type_id().to_le_bytes());
        self.tensors.extend(offset.to_le_bytes());
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
