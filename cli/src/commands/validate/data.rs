//! Estimates what the requests for a file's data sets cost.

use aws_config::SdkConfig;
use serde::Serialize;
use spotsweep_control_plane::decide::data::described;
use spotsweep_protocol::claim::Listing;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, dollars, size};
use spotsweep_sweep_file::SweepFile;

/// Larger objects are fetched in ranges of so many bytes, with a request for each.
const RANGE_BYTES: u64 = 16 << 20;
/// USD for a GET request (fact 31).
const GET_USD: f64 = 0.000_000_4;
/// The mean size below which archives are advised.
const SMALL_BYTES: u64 = 1 << 20;
/// The number of objects from which on archives are advised.
const MANY: u64 = 100_000;

/// One data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DataCost {
    name: String,
    #[serde(flatten)]
    found: Found,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    /// What each instance fetches.
    Listed { objects: u64, bytes: u64, usd_an_instance: f64 },
    /// Why it cannot be fetched.
    Problem(String),
}

impl Found {
    fn of(Listing { objects, bytes, .. }: &Listing) -> Self {
        let requests = objects + bytes / RANGE_BYTES;
        Self::Listed { objects: *objects, bytes: *bytes, usd_an_instance: requests as f64 * GET_USD }
    }
}

impl DataCost {
    /// Lists the data sets with the caller's own credentials.
    pub(super) async fn find(config: &SdkConfig, file: &SweepFile) -> Result<Vec<Self>, Failure> {
        let mut costs = Vec::new();
        for (name, source) in &file.settings.data {
            let listed = spotsweep_aws::measure(config, source).await;
            let listed = listed.context(|| format!("cannot list {} (s3:ListBucket)", source.url()))?;
            let found = match listed {
                Ok(listing) => Found::of(&listing),
                Err(problem) => {
                    let (message, help) = described(&problem, source);
                    Found::Problem(format!("{message}: {help}"))
                }
            };
            costs.push(Self { name: name.clone(), found });
        }
        Ok(costs)
    }

    /// Text for people.
    pub(super) fn line(&self) -> String {
        let name = &self.name;
        match &self.found {
            Found::Problem(problem) => format!("problem: the data set {name} {problem}\n"),
            Found::Listed { objects, bytes, usd_an_instance } => {
                let is_small = *objects >= MANY && bytes / objects < SMALL_BYTES;
                let advice =
                    if is_small { "; archives with `unpack: true` are faster and cheaper (docs/data.md)" } else { "" };
                format!(
                    "data set {name}: {} in {}, {} of requests for each instance that fetches it{advice}\n",
                    size(*bytes),
                    counted(*objects, "object"),
                    dollars(*usd_an_instance)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_objects_cost_more_than_few_large_ones() {
        let line = |objects, bytes| {
            let found = Found::of(&Listing { sha256: String::new(), objects, bytes });
            DataCost { name: "set".to_owned(), found }.line()
        };
        let small = line(1_300_000, 150_000_000_000);
        assert!(small.contains("139.7 GiB in 1300000 objects, $0.52") && small.contains("archives"), "{small}");
        let large = line(150, 150_000_000_000);
        assert!(large.contains("$0.0036") && !large.contains("archives"), "{large}");
    }
}
