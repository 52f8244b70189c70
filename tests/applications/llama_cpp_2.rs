//! A Rust program with llama.cpp linked into it by the crate `llama-cpp-2`. Generates tokens and
//! prints their numbers. Arguments: the model, tokens, threads.

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize| arguments[place].parse::<i32>().expect("a number");
    let mut backend = LlamaBackend::init().expect("llama.cpp starts");
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, &arguments[1], &LlamaModelParams::default())
        .expect("the model can be loaded");
    let params = LlamaContextParams::default()
        .with_n_ctx(std::num::NonZeroU32::new(256))
        .with_n_threads(number(3))
        .with_n_threads_batch(number(3));
    let mut context = model.new_context(&backend, params).expect("a context");
    let mut batch = LlamaBatch::new(64, 1);
    for (position, token) in [1, 40, 41, 42, 43].into_iter().enumerate() {
        batch.add(LlamaToken(token), position as i32, &[0], position == 4).expect("room");
    }
    for position in 5..5 + number(2) {
        context.decode(&mut batch).expect("it can be computed");
        let logits = context.get_logits_ith(batch.n_tokens() - 1);
        let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let best = LlamaToken(best.expect("a vocabulary") as i32);
        print!("{} ", best.0);
        batch.clear();
        batch.add(best, position, &[0], true).expect("room");
    }
    println!();
}
