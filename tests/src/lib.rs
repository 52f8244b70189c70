//! Helpers for the end-to-end tests: published ggml libraries to run, host
//! programs to run them in, the agent to record with, and the recording to look
//! at afterwards. Nothing is mocked.
//!
//! `GGPROF_REQUIRE_GGML=1` makes a test fail where it would otherwise say that
//! ggml could not be fetched and pass; `GGPROF_REQUIRE_BROWSER=1` does the same for
//! Chromium.

#![forbid(unsafe_code)]

pub mod arm64;
pub mod arm64_system;
pub mod asked;
pub mod browser;
pub mod budget;
pub mod built;
pub mod changed_ggml;
pub mod chaos;
mod compiling;
pub mod controlled;
pub mod counting_proxy;
pub mod debian;
pub mod debian_sid;
pub mod ended;
pub mod explained;
pub mod image_program;
mod initramfs;
pub mod llama_cpp_python;
pub mod llama_node;
pub mod llama_server;
pub mod matrix;
pub mod model;
pub mod musl;
pub mod node_llama;
pub mod npm;
pub mod old_ggml;
pub mod other_clock;
pub mod published_ggml;
pub mod pypi;
pub mod python_bindings;
pub mod ran;
pub mod recording;
pub mod rpc;
pub mod rust_programs;
pub mod source_ggml;
pub mod source_rpc;
pub mod tool;
pub mod trial;
pub mod under_agent;
pub mod whisper_model;
pub mod within;
