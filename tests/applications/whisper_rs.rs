//! A Rust program with whisper.cpp linked into it by the crate `whisper-rs`. Listens to two
//! seconds of a tone and prints what it makes of them in numbers. Arguments: the model, decoded
//! tokens, threads.

use whisper_rs::{WhisperContext, WhisperContextParameters};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize| arguments[place].parse::<usize>().expect("a number");
    whisper_rs::install_logging_hooks();
    let parameters = WhisperContextParameters::default();
    let context = WhisperContext::new_with_params(&arguments[1], parameters);
    let context = context.expect("the model can be loaded");
    let mut state = context.create_state().expect("a state");
    let tone: Vec<f32> = (0..32_000).map(|i| (i as f32 / 20.0).sin()).collect();
    state.pcm_to_mel(&tone, number(3)).expect("it can be heard");
    state.encode(0, number(3)).expect("it can be encoded");
    for past in 0..number(2) {
        state.decode(&[50_257], past, number(3)).expect("it can be decoded");
        let logits = state.get_logits().expect("there are some");
        println!("{} {}", logits.len(), logits.iter().map(|&logit| f64::from(logit)).sum::<f64>());
    }
}
