//! Answers requests for suggestions, a line of JSON each.

use std::io::{self, BufRead as _, Write as _};

use serde::Deserialize;
use spotsweep_search::space::Space;
use spotsweep_search::suggest::{Options, Trial, suggest_with};

#[derive(Deserialize)]
struct Request {
    space: Option<Space>,
    options: Option<Options>,
    #[serde(default)]
    trials: Vec<Trial>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    index: u32,
}

fn main() -> io::Result<()> {
    let mut space = Space::default();
    let mut options = Options::default();
    for line in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        space = request.space.unwrap_or(space);
        options = request.options.unwrap_or(options);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&request.seed.to_le_bytes());
        let suggestion = suggest_with(&space, &request.trials, seed, request.index, &options);
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &suggestion)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}
