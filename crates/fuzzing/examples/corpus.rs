//! Writes inputs to start from into `DIR/codec`, `DIR/listener` and `DIR/connection`.

use anabranch_fuzzing::{Target, seeds};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: corpus DIR");
        std::process::exit(2);
    };
    for (target, name) in Target::ALL {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        for (n, input) in seeds(target, 32, 1).iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{n:02}")), input)?;
        }
    }
    Ok(())
}
