//! The importance of parameters: the share of the metric's rank variance that each one explains.
//!
//! All parameters are weighed by one method, so that their shares can be compared. Trials are grouped by the
//! parameter's value, or by up to five equal parts of its ranks for a number with more values. The Kruskal-Wallis test
//! compares the metric of the groups. It gives H and p, and the effect size eta squared, `(H - k + 1) / (n - k)`
//! (Tomczak and Tomczak 2014). This is the share of the ranks' variance between the groups, less what chance alone
//! would give `k` groups. Ranks are used because one diverged loss must not decide, and groups because the best
//! learning rate is often in the middle. For a number, Spearman's correlation shows the direction.
//!
//! The method does not find parameters that matter only together.

use serde::Serialize;
use statrs::function::gamma::checked_gamma_ur;

/// Most groups of a number with many values.
const MAX_GROUPS: usize = 5;
/// Fewest trials in a group, on average.
const MIN_GROUP: usize = 2;
/// With fewer trials the page shows a warning.
const FEW_TRIALS: usize = 30;
/// The p below which a share is significant, divided among all parameters (Bonferroni).
const SIGNIFICANCE: f64 = 0.05;

/// The importance of all parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// How many trials succeeded and have the metric.
    pub trials: usize,
    /// Whether these are too few for reliable shares.
    pub few: bool,
    /// The parameters with a share, the largest first.
    pub weights: Vec<Weight>,
    /// Parameters that cannot be judged, because nearly every trial has a value of its own, or all have the same value.
    pub unjudged: Vec<String>,
}

/// The importance of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weight {
    /// The parameter's name.
    pub name: String,
    /// Eta squared, from 0 (explains nothing) to 1 (explains everything).
    pub share: f64,
    /// The probability that chance alone gives such a share, by the chi-squared approximation.
    pub p: f64,
    /// Whether `p` is significant for this number of parameters.
    pub is_clear: bool,
    /// Spearman's correlation with the metric; only for numbers.
    pub rho: Option<f64>,
    /// How many trials have the parameter.
    pub trials: usize,
    /// How many groups were compared.
    pub groups: usize,
}

/// A parameter's value and the metric of each trial that has both.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The values are numbers.
    Numbers(Vec<(f64, f64)>),
    /// The values are texts, which are equal for equal values.
    Categories(Vec<(String, f64)>),
}

/// Weighs parameters by their observed values. `trials` is the number of trials that have the metric.
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

/// Returns group numbers from 0. Few distinct values are a group each; otherwise the ranks are divided into equal
/// parts.
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

/// Computes the Kruskal-Wallis test over ranks; `None` if there is nothing to compare.
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
    // Equal values have their mean rank, so this is H after the usual correction for ties.
    let h = (n - 1.0) * between / total;
    let freedom = k as f64 - 1.0;
    let p = checked_gamma_ur(freedom / 2.0, h / 2.0).unwrap_or(1.0);
    Some(Test { groups: k, share: ((h - freedom) / (n - k as f64)).clamp(0.0, 1.0), p })
}

/// Returns ranks from 1. Equal values share the mean of their ranks.
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

    /// In these 40 trials the best learning rate is in the middle, the optimizer matters little, and the number of
    /// units not at all.
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

    /// The figures are from scipy 1.17: `kruskal` over the groups, `(h - k + 1) / (n - k)`, and `spearmanr`.
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
