//! Prints a recording record by record: for looking at a file by eye.

fn main() {
    let path = std::env::args_os().nth(1).expect("usage: dump_spool FILE");
    let bytes = std::fs::read(path).expect("the file can be read");
    let spool = ggprof_spool::Spool::open(&bytes).expect("the file is a recording");
    println!("{:#?}", spool.header());
    for record in spool.records() {
        match record {
            Ok(record) => println!("{record:?}"),
            Err(damage) => println!("DAMAGE {damage}"),
        }
    }
}
