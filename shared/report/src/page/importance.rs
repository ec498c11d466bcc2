//! Which parameters matter: the share of the metric's rank variance that each explains.
//!
//! One method for every parameter, so that the shares compare. Trials are grouped by the parameter: by its value, or by
//! fifths of its range of ranks where it is a number with more values than that. Then the Kruskal-Wallis test of the
//! metric over the groups: H, its p, and as effect size eta squared, `(H - k + 1) / (n - k)` (Tomczak and Tomczak 2014),
//! which is the share of the ranks' variance between the groups, less what chance alone would give `k` groups. Ranks,
//! because one diverged loss must not decide; groups, because the best learning rate lies in the middle. Spearman's
//! correlation tells a number's direction beside it.
//!
//! What it does not see: parameters that matter only together.

use serde::Serialize;
use statrs::function::gamma::checked_gamma_ur;

/// Groups of a number with many values.
const MAX_GROUPS: usize = 5;
/// Fewest trials in a group on average.
const MIN_GROUP: usize = 2;
/// Below this the page warns.
const FEW_TRIALS: usize = 30;
/// Where a share counts as more than chance, over all parameters together (Bonferroni).
const SIGNIFICANCE: f64 = 0.05;

/// All parameters, the most important first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// Trials that succeeded and have the metric.
    pub trials: usize,
    /// Whether these are few.
    pub few: bool,
    /// By share.
    pub weights: Vec<Weight>,
    /// Parameters that can't be judged: nearly every trial has a value of its own, or all have the same.
    pub unjudged: Vec<String>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weight {
    /// Its name.
    pub name: String,
    /// Eta squared: 0 (nothing) to 1 (everything).
    pub share: f64,
    /// How likely chance alone gives as much, by the chi-squared approximation.
    pub p: f64,
    /// Whether `p` is small enough to be told from chance, with so many parameters looked at.
    pub is_clear: bool,
    /// Spearman's correlation with the metric; numbers only.
    pub rho: Option<f64>,
    /// Trials that have the parameter.
    pub trials: usize,
    /// Groups compared.
    pub groups: usize,
}

/// A parameter's value in each trial that has it, beside the metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// Numbers.
    Numbers(Vec<(f64, f64)>),
    /// Texts that are equal for equal values.
    Categories(Vec<(String, f64)>),
}

/// Weighs parameters by what was observed. `trials` is how many have the metric.
pub fn weigh(trials: usize, observed: &[(String, Observed)]) -> Importance {
    let judged: Vec<(&String, Option<Weight>)> =
        observed.iter().map(|(name, seen)| (name, weight(name, seen))).collect();
    let unjudged = judged.iter().filter(|(_, weight)| weight.is_none()).map(|(name, _)| (*name).clone()).collect();
    let mut weights: Vec<Weight> = judged.into_iter().filter_map(|(_, weight)| weight).collect();
    let looked_at = weights.len() as f64;
    for weight in &mut weights {
        weight.is_clear = weight.p * looked_at < SIGNIFICANCE;
    }
    weights.sort_by(|left, right| right.share.total_cmp(&left.share).then(left.p.total_cmp(&right.p)));
    Importance { trials, few: trials < FEW_TRIALS, weights, unjudged }
}

fn weight(name: &str, observed: &Observed) -> Option<Weight> {
    let (groups, metric, rho): (Vec<usize>, Vec<f64>, _) = match observed {
        Observed::Numbers(pairs) => {
            let (values, metric): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let ranks = ranks(&values);
            let rho = correlation(&ranks, &self::ranks(&metric));
            (number_groups(&ranks), metric, rho)
        }
        Observed::Categories(pairs) => {
            let mut names: Vec<&String> = pairs.iter().map(|(text, _)| text).collect();
            names.sort_unstable();
            names.dedup();
            let group = |text: &String| names.binary_search(&text).unwrap_or(0);
            (pairs.iter().map(|(text, _)| group(text)).collect(), pairs.iter().map(|(_, value)| *value).collect(), None)
        }
    };
    let test = kruskal_wallis(&groups, &ranks(&metric))?;
    let name = name.to_owned();
    Some(Weight { name, share: test.share, p: test.p, is_clear: false, rho, trials: metric.len(), groups: test.groups })
}

/// Group numbers from 0: the distinct values where there are few, else equal parts of the ranks.
fn number_groups(ranks: &[f64]) -> Vec<usize> {
    let mut distinct = ranks.to_vec();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let most = (ranks.len() / MAX_GROUPS).clamp(MIN_GROUP, MAX_GROUPS);
    let cut = |rank: f64| ((rank - 0.5) / ranks.len() as f64 * most as f64) as usize;
    let place = |rank: &f64| distinct.iter().position(|other| other == rank).unwrap_or(0);
    if distinct.len() <= MAX_GROUPS {
        ranks.iter().map(place).collect()
    } else {
        ranks.iter().map(|rank| cut(*rank)).collect()
    }
}

struct Test {
    groups: usize,
    share: f64,
    p: f64,
}

/// Kruskal-Wallis over ranks; `None` where there is nothing to compare.
fn kruskal_wallis(groups: &[usize], ranks: &[f64]) -> Option<Test> {
    let n = ranks.len() as f64;
    let mut sums = vec![(0.0, 0.0); groups.iter().max()? + 1];
    for (group, rank) in groups.iter().zip(ranks) {
        sums[*group].0 += rank;
        sums[*group].1 += 1.0;
    }
    sums.retain(|(_, count)| *count > 0.0);
    let k = sums.len();
    let mean = (n + 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if k < 2 || ranks.len() < MIN_GROUP * k || ranks.len() <= k || total == 0.0 {
        return None;
    }
    let between: f64 = sums.iter().map(|(sum, count)| count * (sum / count - mean).powi(2)).sum();
    // With ties counted by their mean rank, this is H after the usual correction for ties.
    let h = (n - 1.0) * between / total;
    let freedom = k as f64 - 1.0;
    let p = checked_gamma_ur(freedom / 2.0, h / 2.0).unwrap_or(1.0);
    Some(Test { groups: k, share: ((h - freedom) / (n - k as f64)).clamp(0.0, 1.0), p })
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*left].total_cmp(&values[*right]));
    let mut ranks = vec![0.0; values.len()];
    for run in order.chunk_by(|left, right| values[*left] == values[*right]) {
        let below = order.partition_point(|other| values[*other] < values[run[0]]) as f64;
        for at in run {
            ranks[*at] = below + (run.len() as f64 + 1.0) / 2.0;
        }
    }
    ranks
}

fn correlation(left: &[f64], right: &[f64]) -> Option<f64> {
    let mean = (left.len() as f64 + 1.0) / 2.0;
    let pairs = || left.iter().zip(right).map(|(x, y)| (x - mean, y - mean));
    let (xx, yy, xy) = pairs().fold((0.0, 0.0, 0.0), |(xx, yy, xy), (x, y)| (xx + x * x, yy + y * y, xy + x * y));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// 40 trials: the best learning rate lies in the middle, the optimizer matters little, the number of units not at all.
    const LOSS: [f64; 40] = [
        2.2, 1.1, 0.7, 0.1, 0.7, 2.0, 1.8, 0.8, 0.6, 0.2, 0.9, 2.2, 1.5, 0.6, 0.5, 0.3, 1.2, 2.7, 1.1, 0.4, 0.5, 0.5,
        1.3, 2.5, 0.9, 0.3, 0.6, 0.7, 1.7, 2.1, 0.6, 0.3, 0.7, 0.8, 2.2, 1.7, 0.5, 0.3, 0.8, 1.1,
    ];

    fn observed() -> Vec<(String, Observed)> {
        let trials = || (0_u32..).zip(LOSS);
        let lr = trials().map(|(i, loss)| (10_f64.powf(-4.0 + 3.0 * f64::from(i * 7 % 40) / 39.0), loss)).collect();
        let optimizers = ["adam", "sgd", "lion"];
        let optimizer = trials().map(|(i, loss)| (optimizers[(i * 5 % 3) as usize].to_owned(), loss)).collect();
        let units = trials().map(|(i, loss)| (f64::from(32 << (i * 3 % 4)), loss)).collect();
        let names = trials().map(|(i, loss)| (format!("run {i}"), loss)).collect();
        [
            ("units", Observed::Numbers(units)),
            ("optimizer", Observed::Categories(optimizer)),
            ("lr", Observed::Numbers(lr)),
            ("name", Observed::Categories(names)),
        ]
        .map(|(name, seen)| (name.to_owned(), seen))
        .into()
    }

    /// The figures are scipy 1.17's: `kruskal` over the groups, `(h - k + 1) / (n - k)`, and `spearmanr`.
    #[test]
    fn shares_are_what_scipy_says() {
        let importance = weigh(LOSS.len(), &observed());
        let expected = [
            ("lr", 5, 0.768_772_056_248_484_7, 3.198_041_086_059_403e-6, Some(0.038_371_232_518_641_37), true),
            ("optimizer", 3, 0.008_269_887_300_624_498, 0.315_690_519_152_554, None, false),
            ("units", 4, 0.0, 0.868_405_792_716_993_3, Some(-0.046_608_532_165_275_766), false),
        ];
        assert_eq!(importance.weights.len(), expected.len());
        for (weight, (name, groups, share, p, rho, is_clear)) in importance.weights.iter().zip(expected) {
            assert_eq!((weight.name.as_str(), weight.groups, weight.is_clear), (name, groups, is_clear));
            let near = |left: f64, right: f64| (left - right).abs() <= 1e-10 * right.abs().max(1e-5);
            assert!(near(weight.share, share) && near(weight.p, p), "{weight:?}");
            assert!(weight.rho.is_some() == rho.is_some(), "{weight:?}");
            assert!(near(weight.rho.unwrap_or(0.0), rho.unwrap_or(0.0)), "{weight:?}");
        }
        assert_eq!(importance.unjudged, ["name"], "a value of its own in every trial says nothing");
        assert!(!importance.few);
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        let same = Observed::Numbers((0..9_u32).map(|i| (f64::from(i), 0.5)).collect());
        let empty = Observed::Categories(Vec::new());
        let one = Observed::Numbers(vec![(1.0, 2.0)]);
        let importance = weigh(9, &[("same".into(), same), ("empty".into(), empty), ("one".into(), one)]);
        assert!(importance.weights.is_empty() && importance.few);
        assert_eq!(importance.unjudged.len(), 3);
    }
}
