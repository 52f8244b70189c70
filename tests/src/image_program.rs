//! stable-diffusion.cpp as others publish it: an addon for the JavaScript runtime called Bare, with ggml
//! linked in. It makes an image larger by a network (ESRGAN), whose weights may be anything; so nothing of
//! gigabytes is needed.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Map, json};

use crate::built::{self, target_directory};
use crate::tool;

pub(crate) const NAME: &str = "@qvac/diffusion-cpp 0.25.0";
const PROGRAM: (&str, &str) = ("@qvac/diffusion-cpp", "0.25.0");
const RUNTIME: (&str, &str) = ("bare-runtime-linux-x64", "1.31.0");
/// The archive also has the addon for ten other systems.
const WANTED: &str = "package/prebuilds/linux-x64";

/// A command that enlarges an image of so many pixels a side, twice.
pub fn command(threads: u32, side: u32) -> Option<Command> {
    tool::fetched("stable-diffusion.cpp", prepared(threads, side))
}

pub(crate) fn prepared(threads: u32, side: u32) -> Result<Command, String> {
    let program = unpacked(PROGRAM, &[WANTED, "package/binding.js", "package/package.json"])?;
    let runtime = unpacked(RUNTIME, &["package"])?;
    let model = model().map_err(|error| error.to_string())?;
    let bare = runtime.join("bin/bare");
    // Archives of npm know no programs.
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&bare, executable).map_err(|error| error.to_string())?;
    let mut command = Command::new(bare);
    command.arg(built::application("upscales.js")).arg(program).arg(model);
    command.args([threads.to_string(), side.to_string()]);
    Ok(command)
}

/// The folder of a package with these parts of it.
fn unpacked((name, version): (&str, &str), parts: &[&str]) -> Result<PathBuf, String> {
    static FETCHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let plain = name.trim_start_matches('@').replace('/', "-");
    let directory = target_directory().join("image-program").join(format!("{plain}-{version}"));
    let text = |error: io::Error| error.to_string();
    if !directory.is_dir() {
        let fresh = directory.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&fresh).map_err(text)?;
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", &format!("{name}@{version}")]).current_dir(&fresh);
        tool::output(&mut pack)?;
        let archive = format!("{plain}-{version}.tgz");
        let mut unpack = Command::new("tar");
        tool::output(unpack.args(["xzf", &archive]).args(parts).current_dir(&fresh))?;
        std::fs::remove_file(fresh.join(archive)).map_err(text)?;
        std::fs::rename(fresh, &directory).map_err(text)?;
    }
    directory.join("package").canonicalize().map_err(text)
}

/// The network with one block, which doubles an image.
fn model() -> io::Result<PathBuf> {
    const CHANNELS: usize = 64;
    const GROWN_BY: usize = 32;
    let mut layers = vec![("conv_first".to_owned(), 3, CHANNELS)];
    for (part, step) in (1..=3).flat_map(|part| (1..=5).map(move |step| (part, step))) {
        let from = CHANNELS + GROWN_BY * (step - 1);
        let to = if step == 5 { CHANNELS } else { GROWN_BY };
        layers.push((format!("body.0.rdb{part}.conv{step}"), from, to));
    }
    let behind = ["conv_body", "conv_up1", "conv_hr"];
    layers.extend(behind.map(|name| (name.to_owned(), CHANNELS, CHANNELS)));
    layers.push(("conv_last".to_owned(), CHANNELS, 3));
    let directory = target_directory().join("models");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("upscaler.safetensors");
    let fresh = directory.join(format!("upscaler.{}", std::process::id()));
    write(&fresh, &layers)?;
    std::fs::rename(fresh, &path)?;
    path.canonicalize()
}

/// As safetensors: the length of a description, the description in JSON, the numbers. Each layer has
/// windows of 3 x 3 pixels.
fn write(file: &Path, layers: &[(String, usize, usize)]) -> io::Result<()> {
    let (mut tensors, mut numbers) = (Map::new(), Vec::new());
    let mut seed = 1_u32;
    let mut add = |name: String, shape: &[usize]| {
        let start = numbers.len();
        for _ in 0..shape.iter().product() {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let weight = (f64::from(seed) / f64::from(u32::MAX) - 0.5) / 10.0;
            numbers.extend((weight as f32).to_le_bytes());
        }
        let tensor =
            json!({"dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()]});
        tensors.insert(name, tensor);
    };
    for (name, from, to) in layers {
        add(format!("{name}.weight"), &[*to, *from, 3, 3]);
        add(format!("{name}.bias"), &[*to]);
    }
    let description = serde_json::Value::Object(tensors).to_string();
    let mut bytes = (description.len() as u64).to_le_bytes().to_vec();
    bytes.extend(description.as_bytes());
    bytes.extend(numbers);
    std::fs::write(file, bytes)
}
