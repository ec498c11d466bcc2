//! Finds the setting that an unknown key below `spotsweep` means.

use super::problem::near_miss;
use super::settings::NESTED;
use super::tree::{Entry, Kind};

/// Words of other programs, and the setting of spotsweep for each.
const OTHERS: [(&[&str], &str); 13] = [
    (&["retries", "max_retries", "retry", "max_attempts"], "write `attempts:`, which counts all starts of a trial"),
    (&["image_uri", "container", "docker", "docker_image"], "write `image:` and the image's name"),
    (&["environment", "envs", "variables", "env_vars"], "write `env: {NAME: value}`"),
    (&["secret", "api_key", "api_keys", "tokens", "credentials"], "write `secrets: [NAME]`"),
    (&["workdir", "working_dir", "work_dir", "source", "source_dir"], "write `code: .` for this file's folder"),
    (
        &["dataset", "datasets", "data_set", "data_sets", "inputs", "mounts", "file_mounts", "storage_mounts", "s3"],
        "write `data: {imagenet: \"s3://bucket/imagenet/\"}`",
    ),
    (
        &[
            "instance_type",
            "instance_types",
            "instance",
            "region",
            "zone",
            "spot",
            "accelerators",
            "cloud",
            "partition",
        ],
        "instances belong to a queue: write `queue:` and its name",
    ),
    (&["cpu", "cpus", "vcpu", "cores", "num_cpus"], "write `resources: {vcpus: …}`"),
    (&["gpu", "num_gpus", "ngpus", "gpu_count"], "write `resources: {gpus: …}`"),
    (&["ram", "mem", "memory_mib", "memory_gb"], "write `resources: {memory: …}`, with a unit, such as 16GiB"),
    (&["disk", "disk_size", "storage", "volume_size"], "write `workspace: {size: …}`, with a unit, such as 100GiB"),
    (
        &["max_cost", "cost", "max_price", "max_dollars", "usd"],
        "write `budget: {max_usd: …}`, the US dollars of the whole sweep",
    ),
    (&["max_runs", "run_cap", "runs", "count", "max_trials", "num_trials", "n_trials"], "write `trials:`"),
];

/// Returns the help for an unknown key. `written` is its value as written in the file.
pub(crate) fn setting(entry: &Entry, written: &str) -> Option<String> {
    let key = entry.key.to_lowercase().replace('-', "_");
    let inner = || NESTED.iter().flat_map(|(outer, inner)| inner.iter().map(move |inner| (*outer, *inner)));
    let is_scalar = matches!(entry.value.kind, Kind::Scalar(_)) && !entry.value.is_null();
    let value = if is_scalar { written } else { "…" };
    if let Some((outer, inner)) = inner().find(|(_, inner)| *inner == key) {
        return Some(format!("write `{outer}: {{{inner}: {value}}}`"));
    }
    let other = OTHERS.iter().find(|(words, _)| words.contains(&key.as_str()));
    let near = || {
        let near = near_miss(&key, inner().map(|(_, inner)| inner))?;
        inner().find(|(_, inner)| *inner == near)
    };
    other.map(|(_, help)| (*help).to_owned()).or_else(|| {
        let (outer, inner) = near()?;
        Some(format!("did you mean `{outer}: {{{inner}: {value}}}`?"))
    })
}
