//! A model for whisper.cpp without weights: whisper.cpp takes it for a test model and computes as
//! if all weights were zero.

use std::io;
use std::path::PathBuf;

use crate::built::target_directory;

/// whisper.cpp's numbers for a model, in the order of its file: vocabulary; audio context,
/// state, heads and layers; the same of text; mel bands; type of weights (F16). The layers
/// are those of the model called tiny, the state is smaller.
const SIZES: [u32; 11] = [51_864, 1500, 64, 2, 4, 448, 64, 2, 4, 80, 1];
const MEL_BANDS: u32 = 80;
const FREQUENCIES: u32 = 201;

/// The model's file in the target directory, written once.
pub fn file() -> io::Result<PathBuf> {
    let directory = target_directory().join("models");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("whisper.bin");
    let mut bytes = 0x6767_6d6c_u32.to_le_bytes().to_vec();
    for number in SIZES.into_iter().chain([MEL_BANDS, FREQUENCIES]) {
        bytes.extend(number.to_le_bytes());
    }
    let filters = (MEL_BANDS * FREQUENCIES) as usize * size_of::<f32>();
    bytes.resize(bytes.len() + filters, 0);
    // No words: whisper.cpp makes names up for them.
    bytes.extend(0_u32.to_le_bytes());
    let fresh = directory.join(format!("whisper.{}", std::process::id()));
    std::fs::write(&fresh, bytes)?;
    std::fs::rename(fresh, &path)?;
    path.canonicalize()
}
