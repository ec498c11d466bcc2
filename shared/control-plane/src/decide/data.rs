//! Why a sweep's data sets cannot be read, and what a person can do about it.

use std::collections::BTreeMap;

use spotsweep_protocol::claim::{KeyProblem, Preparation};
use spotsweep_protocol::words::size;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::target::DataDisk;
use spotsweep_sweep_file::{DataSource, Problem, SweepFile, Warning};

use crate::outcome::DataProblem;

/// The prefix of the deployment's own bucket below which data may be. The rest of the bucket has results and sweep files
/// of others (TrialRole in infra/control-plane.yaml).
const OWN_PREFIX: &str = "data/";

/// Returns a problem for each data set that is in the deployment's own bucket, but not where data may be.
pub(super) fn misplaced(file: &SweepFile, own: &str) -> Vec<Problem> {
    let sources = file.settings.data.iter();
    let misplaced = sources.filter(|(_, source)| source.bucket == own && !source.key.starts_with(OWN_PREFIX));
    let problem = |name: &String| {
        let message = format!("the data set `{name}` is not below {OWN_PREFIX} of the deployment's bucket");
        let help = format!("move it: `aws s3 mv --recursive FROM s3://{own}/{OWN_PREFIX}{name}/`");
        file.problem_at("data", message, help)
    };
    misplaced.map(|(name, _)| problem(name)).collect()
}

/// Returns the problems of a file whose data sets could not be listed.
pub(super) fn refused(prepared: &Prepared, problems: &[(String, DataProblem)]) -> Vec<Problem> {
    let sources = &prepared.file.settings.data;
    let known = problems.iter().filter_map(|(name, problem)| Some((name, problem, sources.get(name)?)));
    let problem = |(name, problem, source)| {
        let (message, help) = described(problem, source);
        prepared.file.problem_at("data", format!("the data set `{name}` {message}"), help)
    };
    known.map(problem).collect()
}

/// Returns a warning if some of the instances that Batch may start have a smaller disk than the data sets.
///
/// # Errors
/// Returns a problem if all have a smaller one.
pub(super) fn fit(prepared: &Prepared) -> Result<Option<Warning>, Problem> {
    let sets = prepared.plan.preparation.iter().flat_map(Preparation::data).map(|set| &set.listing);
    // An instance has equal listings once.
    let sizes: BTreeMap<&str, u64> = sets.map(|listing| (listing.sha256.as_str(), listing.bytes)).collect();
    let bytes = sizes.into_values().sum();
    let usable = prepared.disks.iter().filter(|disk| disk.gpus >= prepared.plan.gpus);
    let (small, large): (Vec<&DataDisk>, Vec<_>) = usable.partition(|disk| disk.bytes < bytes);
    let named = |disk: &DataDisk| format!("{} ({})", disk.instance_type, size(disk.bytes));
    let help = "instances with larger disks of their own: the deployment's parameter InstanceTypes; a larger root disk, \
                for types without: RootGib; or a smaller data set (docs/data.md)";
    match (small.iter().max_by_key(|disk| disk.bytes), large.is_empty()) {
        (None, _) => Ok(None),
        (Some(largest), true) => {
            let bytes = size(bytes);
            let message = format!(
                "the data sets have {bytes}, and no instance of the queue has room: the largest disk is that of {}",
                named(largest)
            );
            Err(prepared.file.problem_at("data", message, help))
        }
        (Some(_), false) => {
            let small: Vec<String> = small.into_iter().map(named).collect();
            let (bytes, small) = (size(bytes), small.join(", "));
            let message =
                format!("the data sets have {bytes}, more than the disk of {small}: a trial that starts there fails");
            Ok(Some(Warning(prepared.file.problem_at("data", message, help))))
        }
    }
}

/// Returns what is wrong with a data set, as the rest of a sentence, and what to do about it.
pub fn described(problem: &DataProblem, source: &DataSource) -> (String, String) {
    let (bucket, url) = (&source.bucket, source.url());
    match problem {
        DataProblem::NoBucket => {
            (format!("names the bucket {bucket}, which does not exist"), "fix its name".to_owned())
        }
        DataProblem::Denied => (
            format!("is in the bucket {bucket}, which this deployment may not list"),
            format!(
                "add {bucket} to the deployment's parameter DataBuckets, and have its owner allow the deployment's roles; \
                 or copy the data into the deployment's bucket (docs/data.md)"
            ),
        ),
        DataProblem::OtherRegion => (
            format!("is in the bucket {bucket}, which is in another region"),
            "copy it into a bucket of the deployment's region: each instance would pay for the transfer".to_owned(),
        ),
        DataProblem::Empty => (
            format!("has no objects: nothing is at {url}"),
            format!("upload it: `aws s3 cp --recursive FOLDER {url}`; or fix the key"),
        ),
        DataProblem::Archived { key, class } => (
            format!("has an object that must be restored before it can be read: {key:?} ({class})"),
            "restore or copy it to another storage class: `aws s3 cp --storage-class STANDARD`".to_owned(),
        ),
        DataProblem::TooMany { prefix, most } => (
            format!("has more than {most} objects whose keys begin with {prefix:?}"),
            "pack them into archives and write `unpack: true`, or divide them into folders".to_owned(),
        ),
        DataProblem::Key(KeyProblem { key, why }) => (
            format!("has an object that cannot become a file: {key:?} {why}"),
            "rename or delete the object".to_owned(),
        ),
    }
}
