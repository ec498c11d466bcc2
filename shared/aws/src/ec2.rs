//! EC2's calls over its SDK: it maps the fields of requests and answers.

mod answer;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::Builder;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{self, InstanceType, ResourceType, TagSpecification, VolumeType};
use spotsweep_control_plane::calls::{
    AttachVolume, Attachment, CallError, CreateSnapshot, CreateVolume, DescribeInstanceTypes, DescribeSnapshots,
    DescribeSpotPrices, DescribeVolumes, Ec2, Filter, Instance, InstanceStatus, InstanceTypeInfo, Page, Snapshot,
    SpotPriceRow, Tag, Volume,
};
use spotsweep_records::workspace::EC2_TRIES;

use self::answer::{attachment, instance, snapshot, volume};
use super::call_error::call_error;
use super::fields::{next, number, some};
use super::lazy::{Lazy, lazy};

/// Makes a client that shares the configuration's HTTP client.
fn client(config: &SdkConfig) -> Client {
    let retry = config.retry_config().cloned().unwrap_or_else(RetryConfig::standard).with_max_attempts(EC2_TRIES);
    Client::from_conf(Builder::from(config).retry_config(retry).build())
}

/// The calls to EC2 over its SDK.
#[derive(Debug)]
pub(super) struct Ec2Sdk(Lazy<Client>);

impl Ec2Sdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, client))
    }
}

impl Ec2 for Ec2Sdk {
    async fn create_volume(&self, wanted: CreateVolume) -> Result<Volume, CallError> {
        let request = self.0.create_volume().availability_zone(wanted.zone);
        let made = request
            .volume_type(VolumeType::from(wanted.volume_type))
            .size(number(wanted.size_gib))
            .set_encrypted(wanted.encrypted.then_some(true))
            .set_snapshot_id(wanted.snapshot)
            .set_volume_initialization_rate(wanted.initialization_rate.map(number))
            .client_token(wanted.client_token)
            .tag_specifications(tags(ResourceType::Volume, wanted.tags))
            .send()
            .await
            .map_err(call_error)?;
        let id = made.volume_id.ok_or_else(|| CallError::unclear("CreateVolume answered without a volume id"))?;
        Ok(answer::new_volume(id, made.state.as_ref(), made.attachments.unwrap_or_default()))
    }

    async fn describe_volumes(&self, wanted: DescribeVolumes) -> Result<Page<Volume>, CallError> {
        let request = self.0.describe_volumes().set_volume_ids(some(wanted.ids)).set_filters(filters(wanted.filters));
        let found = request.set_next_token(wanted.next_token).send().await.map_err(call_error)?;
        let items = found.volumes.unwrap_or_default().into_iter().map(volume).collect::<Option<_>>();
        let items = items.ok_or_else(|| CallError::unclear("a volume without an id"))?;
        Ok(Page { items, next_token: next(found.next_token) })
    }

    async fn attach_volume(&self, wanted: AttachVolume) -> Result<Attachment, CallError> {
        let request = self.0.attach_volume().volume_id(wanted.volume).instance_id(wanted.instance);
        let attached = request.device(wanted.device).send().await.map_err(call_error)?;
        Ok(attachment(attached.instance_id, attached.state.as_ref()))
    }

    async fn detach_volume(&self, volume: String, force: bool) -> Result<Attachment, CallError> {
        let detached = self.0.detach_volume().volume_id(volume).force(force).send().await.map_err(call_error)?;
        Ok(attachment(detached.instance_id, detached.state.as_ref()))
    }

    async fn delete_volume(&self, volume: String) -> Result<(), CallError> {
        self.0.delete_volume().volume_id(volume).send().await.map_err(call_error)?;
        Ok(())
    }

    /// The SDK's own retries are off, because a call that timed out may have taken effect.
    async fn create_snapshot(&self, wanted: CreateSnapshot) -> Result<Snapshot, CallError> {
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let request = self.0.create_snapshot().volume_id(wanted.volume).description(wanted.description);
        let request = request.tag_specifications(tags(ResourceType::Snapshot, wanted.tags));
        let taken = request.customize().config_override(once).send().await.map_err(call_error)?;
        let id =
            taken.snapshot_id.ok_or_else(|| CallError::unclear("CreateSnapshot answered without a snapshot id"))?;
        Ok(answer::new_snapshot(id, taken.state.as_ref()))
    }

    async fn describe_snapshots(&self, wanted: DescribeSnapshots) -> Result<Page<Snapshot>, CallError> {
        let request = self.0.describe_snapshots().set_snapshot_ids(some(wanted.ids));
        let request = request.set_filters(filters(wanted.filters)).set_next_token(wanted.next_token);
        let request = request.set_owner_ids(wanted.own.then(|| vec!["self".to_owned()]));
        let found = request.send().await.map_err(call_error)?;
        let items = found.snapshots.unwrap_or_default().into_iter().map(snapshot).collect::<Option<_>>();
        let items = items.ok_or_else(|| CallError::unclear("a snapshot without an id"))?;
        Ok(Page { items, next_token: next(found.next_token) })
    }

    async fn delete_snapshot(&self, snapshot: String) -> Result<(), CallError> {
        self.0.delete_snapshot().snapshot_id(snapshot).send().await.map_err(call_error)?;
        Ok(())
    }

    async fn describe_instance_status(&self, instance: String) -> Result<Vec<InstanceStatus>, CallError> {
        // Without `IncludeAllInstances` EC2 describes only running instances.
        let request = self.0.describe_instance_status().instance_ids(instance).include_all_instances(true);
        let found = request.send().await.map_err(call_error)?;
        Ok(found.instance_statuses().iter().map(answer::instance_status).collect())
    }

    async fn describe_spot_price_history(&self, wanted: DescribeSpotPrices) -> Result<Page<SpotPriceRow>, CallError> {
        let types = wanted.instance_types.iter().map(|name| InstanceType::from(name.as_str())).collect();
        let request = self.0.describe_spot_price_history().set_instance_types(Some(types));
        let request =
            request.product_descriptions(wanted.product).start_time(DateTime::from_secs(wanted.since.as_second()));
        let found = request.set_next_token(wanted.next_token).send().await.map_err(call_error)?;
        let items = found.spot_price_history.unwrap_or_default().into_iter().filter_map(answer::spot_price).collect();
        Ok(Page { items, next_token: next(found.next_token) })
    }

    async fn describe_instance_types(
        &self,
        wanted: DescribeInstanceTypes,
    ) -> Result<Page<InstanceTypeInfo>, CallError> {
        let request = self.0.describe_instance_types().set_filters(filters(wanted.filters));
        let found = request.set_next_token(wanted.next_token).send().await.map_err(call_error)?;
        let items = found.instance_types.unwrap_or_default().iter().filter_map(answer::instance_type).collect();
        Ok(Page { items, next_token: next(found.next_token) })
    }

    async fn terminate_instances(&self, instance: String) -> Result<(), CallError> {
        self.0.terminate_instances().instance_ids(instance).send().await.map_err(call_error)?;
        Ok(())
    }

    async fn describe_instances(&self, id: String) -> Result<Vec<Instance>, CallError> {
        let found = self.0.describe_instances().instance_ids(id).send().await.map_err(call_error)?;
        Ok(found.reservations().iter().flat_map(types::Reservation::instances).map(instance).collect())
    }
}

fn filters(filters: Vec<Filter>) -> Option<Vec<types::Filter>> {
    let filter = |wanted: Filter| types::Filter::builder().name(wanted.name).set_values(Some(wanted.values)).build();
    some(filters.into_iter().map(filter).collect())
}

fn tags(kind: ResourceType, tags: Vec<Tag>) -> TagSpecification {
    let tag = |(key, value)| types::Tag::builder().key(key).value(value).build();
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags.into_iter().map(tag).collect())).build()
}
