//! The data sets of a run, and the faults that concern them, as its seed decides them.

use std::time::Duration;

use crate::cloud::BUCKET;
use crate::harness::Harness;

/// Names of data sets, and the bytes of their objects.
const SETS: [(&str, &[usize]); 3] = [("a", &[100, 120, 80]), ("b", &[150, 300]), ("c", &[250, 50, 150, 150])];

/// Data sets that a sweep reads, by their place in [`SETS`].
type Chosen = &'static [usize];

/// The sets of a sweep, and of another one at the same time. Each disk has room for the sets of one sweep.
const CHOICES: [(Chosen, Option<Chosen>); 5] =
    [(&[0], None), (&[0, 1], None), (&[0], Some(&[2])), (&[0, 1], Some(&[2])), (&[0, 1], Some(&[0]))];

/// The bytes of an instance's disk. A part stays free.
const DISKS: [u64; 4] = [800, 800, 1_000, 2_000];

/// The data sets of a run, and the disk of its instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSets {
    /// Those of the sweep.
    sets: Chosen,
    /// Those of another sweep that begins this much later, if there is one.
    beside: Option<(Chosen, Duration)>,
    /// The bytes of each instance's disk.
    pub(in crate::run) disk: u64,
    /// `attempts` of the sweep files.
    attempts: u32,
    /// Whether there are half as many instances as otherwise, so that trials follow each other on them.
    pub(in crate::run) on_few_instances: bool,
}

/// The faults that concern data sets, as shares from 0 to 1 unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataFaults {
    /// Objects that do not arrive, so that the attempt leaves.
    pub broken: f64,
    /// Objects that take some minutes.
    pub slow: f64,
    /// Steps of a runner before which it is stopped for up to a minute.
    pub paused: f64,
    /// Starts of containers before which an instance without any other container boots.
    pub reboots: f64,
    /// When an object of the first set is changed, from the beginning of the run.
    pub changed_after: Option<Duration>,
}

impl DataFaults {
    /// No faults.
    pub const NONE: Self = Self { broken: 0.0, slow: 0.0, paused: 0.0, reboots: 0.0, changed_after: None };

    fn mixed(upto: &mut impl FnMut(u32) -> u32) -> Self {
        let mut share = |most: f64| most * f64::from(upto(4)) / 4.0;
        let (broken, slow, paused, reboots) = (share(0.2), share(0.2), share(0.4), share(1.0));
        let is_changed = upto(7) == 0;
        let changed_after = is_changed.then(|| Duration::from_secs(60 * u64::from(3 + upto(17))));
        Self { broken, slow, paused, reboots, changed_after }
    }
}

impl DataSets {
    /// The sets of a seed, if it has any, and their faults.
    pub(in crate::run) fn mixed(upto: &mut impl FnMut(u32) -> u32) -> Option<(Self, DataFaults)> {
        if upto(3) > 0 {
            return None;
        }
        let among = |drawn: u32| usize::try_from(drawn).unwrap_or(0);
        let (sets, beside) = CHOICES[among(upto(4))];
        let later = Duration::from_secs(30 * u64::from(upto(20)));
        let disk = DISKS[among(upto(3))];
        let attempts = if upto(2) == 0 { 3 } else { 50 };
        let on_few_instances = upto(3) > 0;
        let beside = beside.map(|beside| (beside, later));
        let sets = Self { sets, beside, disk, attempts, on_few_instances };
        Some((sets, DataFaults::mixed(upto)))
    }

    /// Puts the objects of all sets into the bucket.
    pub(in crate::run) fn put(harness: &Harness) {
        for (name, objects) in SETS {
            for (number, bytes) in objects.iter().enumerate() {
                harness.cloud.put(&format!("data/{name}/{number}"), vec![b'x'; *bytes]);
            }
        }
    }

    /// Changes the last object of the first set.
    pub(in crate::run) fn change(harness: &Harness) {
        let (name, objects) = SETS[0];
        let last = objects.len() - 1;
        harness.cloud.put(&format!("data/{name}/{last}"), vec![b'y'; objects[last]]);
    }

    /// The settings of the sweep file.
    pub(in crate::run) fn settings(self) -> String {
        self.settings_of(self.sets)
    }

    /// The other sweep's file, with more settings, and when it is dropped.
    pub(in crate::run) fn beside(self, more: &str) -> Option<(String, Duration)> {
        let (sets, later) = self.beside?;
        let settings = self.settings_of(sets);
        let settings = format!("workspace: {{keep_failed: 0}}, {settings}{more}");
        Some((format!("trials: [{{a: 0}}, {{a: 1}}, {{a: 2}}]\nspotsweep: {{{settings}}}\n"), later))
    }

    fn settings_of(self, sets: Chosen) -> String {
        let url = |set: &usize| format!("{0}: \"s3://{BUCKET}/data/{0}/\"", SETS[*set].0);
        let urls: Vec<String> = sets.iter().map(url).collect();
        format!("data: {{{}}}, attempts: {}", urls.join(", "), self.attempts)
    }
}
