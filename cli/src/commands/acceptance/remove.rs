//! Deletes what a run has made: jobs, volumes, objects, and the stack that interrupts and records.

use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Sweep;

use super::chaos::Chaos;
use super::subject::Subject;
use super::sweep;
use crate::commands::cancel;
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};

/// Tries each part, even if another one fails. A second Ctrl-C leaves the rest. `sweep` is the run's sweep, if its id
/// is known.
pub(super) async fn all(subject: &Subject, chaos: &Chaos<'_>, sweep: Option<SweepId>) -> Result<(), Failure> {
    let of_sweep = unless_stopped(end(subject, sweep)).await;
    let of_stack = unless_stopped(chaos.delete()).await;
    let problems = [of_sweep, of_stack].into_iter().filter_map(Result::err).map(|problem| problem.to_string());
    let problems: Vec<String> = problems.collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("not everything that the run made is deleted:\n{}", problems.join("\n"))))
}

/// Deletes the file first: a function that has not read it by then submits nothing, and one that has read it has
/// committed a record before. Then the running jobs are ended, and all objects are deleted.
async fn end(subject: &Subject, sweep: Option<SweepId>) -> Result<(), Failure> {
    delete_objects(subject, sweep::KEY).await?;
    let cannot_read = || format!("cannot read the table {}", subject.table);
    let reader = Reader::new(&subject.target.config, subject.table.clone());
    let open = reader.open_sweeps().await.context(cannot_read)?.into_iter();
    let mut records: Vec<Sweep> = open.filter(|record| record.upload.key == sweep::KEY).collect();
    if let Some(id) = sweep.filter(|id| records.iter().all(|record| record.id != *id)) {
        records.extend(reader.sweep(&id).await.context(cannot_read)?);
    }
    for record in records {
        let results = record.id.results_prefix();
        end_jobs(subject, &reader, record).await?;
        delete_objects(subject, &results).await?;
    }
    delete_objects(subject, sweep::KEY).await
}

/// Ends a sweep's running jobs, and waits until its volumes are deleted.
pub(super) async fn end_jobs(subject: &Subject, reader: &Reader, sweep: Sweep) -> Result<(), Failure> {
    let target = Target { name: subject.table.clone(), ..subject.target.clone() };
    cancel::whole_sweep(Found { sweep, reader: reader.clone(), target }).await
}

/// Deletes every version of every object.
async fn delete_objects(subject: &Subject, prefix: &str) -> Result<(), Failure> {
    let (s3, bucket) = (spotsweep_aws::path_style_s3(&subject.target.config), &subject.bucket);
    let cannot_delete = || format!("cannot delete s3://{bucket}/{prefix}*");
    loop {
        let page = s3.list_object_versions().bucket(bucket).prefix(prefix).send().await.context(cannot_delete)?;
        let versions = page.versions().iter().map(|version| (version.key(), version.version_id()));
        let markers = page.delete_markers().iter().map(|marker| (marker.key(), marker.version_id()));
        let mut objects = Vec::new();
        for (key, version) in versions.chain(markers) {
            let object =
                ObjectIdentifier::builder().key(key.unwrap_or_default()).set_version_id(version.map(str::to_owned));
            objects.push(object.build().context(cannot_delete)?);
        }
        if objects.is_empty() {
            return Ok(());
        }
        let delete = Delete::builder().set_objects(Some(objects)).quiet(true).build().context(cannot_delete)?;
        let deleted = s3.delete_objects().bucket(bucket).delete(delete).send().await.context(cannot_delete)?;
        if let Some(error) = deleted.errors().first() {
            let (key, message) = (error.key().unwrap_or_default(), error.message().unwrap_or_default());
            return Err(Failure::new(format!("cannot delete s3://{bucket}/{key}: {message}")));
        }
    }
}
