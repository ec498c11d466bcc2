//! Warns of parameter sets without a rank, because some of their repeats have no result.

use spotsweep_protocol::words::counted;
use spotsweep_ranking::sets::{Lacks, sets};
use spotsweep_records::sweep::Ranking;
use spotsweep_records::trial::Trial;
use spotsweep_sweep_file::Repeats;

/// Most sets that a warning lists.
const LISTED_SETS: usize = 4;

/// Returns the warning if sets will never have all results.
pub(super) fn unranked(by: Option<&Ranking>, repeats: &Repeats, trials: &[Trial]) -> Option<String> {
    let mut lacking: Vec<(u32, Lacks)> = sets(by, repeats, trials)
        .iter()
        .filter(|set| set.lacks.is_final())
        .map(|set| (set.number, set.lacks))
        .collect();
    lacking.sort_by_key(|(number, _)| *number);
    let shown: Vec<String> =
        lacking.iter().take(LISTED_SETS).map(|(number, lacks)| format!("of trial {number}: {lacks}")).collect();
    let more = if lacking.len() > LISTED_SETS { "; …" } else { "" };
    let count = counted(lacking.len(), "parameter set");
    (!lacking.is_empty())
        .then(|| format!("no rank for {count}, which lack results of repeats ({}{more})", shown.join("; ")))
}
