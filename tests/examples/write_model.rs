//! Writes a model of random weights: for measuring on machines without one.

use ggprof_e2e::model::Model;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().expect("usage: write_model FILE [tiny|small]");
    let model = match arguments.next() {
        None => Model::BILLION,
        Some(size) if size == "small" => Model::SMALL,
        Some(_) => Model::TINY,
    };
    model.write(path.as_ref())
}
