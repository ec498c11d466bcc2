//! `suggestions` answers questions of `studies/search`, one line of JSON each: which parameters to try next, and
//! whether a trial stops.

use std::io::{self, BufRead as _, Write as _};

use serde::{Deserialize, Serialize};
use spotsweep_search::curve::Curve;
use spotsweep_search::space::Space;
use spotsweep_search::stop::Rule;
use spotsweep_search::suggest::{Trial, suggest};

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    /// The space of the suggestions that follow.
    Begin {
        space: Space,
    },
    Suggest {
        trials: Vec<Trial>,
        seed: u64,
        index: u32,
    },
    Judge {
        rule: Rule,
        own: Curve,
        peers: Vec<Curve>,
    },
}

fn main() -> io::Result<()> {
    let mut space = Space::default();
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Question::Begin { space: own } => space = own,
            Question::Suggest { trials, seed, index } => {
                let mut whole = [0; 32];
                whole[..8].copy_from_slice(&seed.to_le_bytes());
                answer(&suggest(&space, &trials, whole, index))?;
            }
            Question::Judge { rule, own, peers } => answer(&rule.judge(&own, None, &peers))?,
        }
    }
    Ok(())
}

fn answer(answer: &impl Serialize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, answer)?;
    output.write_all(b"\n")?;
    output.flush()
}
