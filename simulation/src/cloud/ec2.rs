//! EC2's calls on the World: translates requests and answers.

use spotsweep_control_plane::calls::{
    self, AttachVolume, Attachment, CallError, CreateSnapshot, CreateVolume, DescribeInstanceTypes, DescribeSnapshots,
    DescribeSpotPrices, DescribeVolumes, Ec2, Instance, InstanceStatus, InstanceTypeInfo, Page, Snapshot, SpotPriceRow,
    Tag, Volume, Wait,
};
use spotsweep_world::{Filter, InstanceType, Selection, Service, ebs};

use super::client::Client;

/// EC2's smallest page.
const SMALLEST_PAGE: usize = 5;

/// Half as many as the ids with which a sweep is looked up at a time.
const SNAPSHOTS_PAGE: usize = 100;

impl<W: Wait> Ec2 for Client<'_, W> {
    async fn create_volume(&self, wanted: CreateVolume) -> Result<Volume, CallError> {
        let request = ebs::CreateVolume {
            zone: wanted.zone,
            size_gib: Some(wanted.size_gib),
            snapshot: wanted.snapshot,
            volume_type: Some(wanted.volume_type.to_owned()),
            encrypted: wanted.encrypted,
            client_token: Some(wanted.client_token),
            initialization_rate: wanted.initialization_rate,
            tags: tags(wanted.tags),
        };
        self.ec2("CreateVolume", |world| Ok(volume(&world.create_volume(request.clone())?))).await
    }

    async fn describe_volumes(&self, wanted: DescribeVolumes) -> Result<Page<Volume>, CallError> {
        let wanted = selection((wanted.ids, wanted.filters), SMALLEST_PAGE, wanted.next_token);
        self.ec2("DescribeVolumes", |world| {
            let (found, next_token) = world.describe_volumes(&wanted)?;
            Ok(Page { items: found.into_iter().map(volume).collect(), next_token })
        })
        .await
    }

    async fn attach_volume(&self, wanted: AttachVolume) -> Result<Attachment, CallError> {
        let AttachVolume { volume, instance, device } = wanted;
        let request = ebs::AttachVolume { volume, instance, device };
        self.ec2("AttachVolume", |world| Ok(attachment(&world.attach_volume(&request)?))).await
    }

    async fn detach_volume(&self, volume: String, force: bool) -> Result<Attachment, CallError> {
        let request = ebs::DetachVolume { volume, instance: None, device: None, force };
        self.ec2("DetachVolume", |world| Ok(attachment(&world.detach_volume(&request)?))).await
    }

    async fn delete_volume(&self, volume: String) -> Result<(), CallError> {
        self.ec2("DeleteVolume", |world| world.delete_volume(&volume)).await
    }

    async fn create_snapshot(&self, wanted: CreateSnapshot) -> Result<Snapshot, CallError> {
        let CreateSnapshot { volume, description, tags: wanted } = wanted;
        let request = ebs::CreateSnapshot { volume, description, tags: tags(wanted) };
        self.once(Service::Ec2, "CreateSnapshot", |world| Ok(snapshot(&world.create_snapshot(request)?))).await
    }

    async fn describe_snapshots(&self, wanted: DescribeSnapshots) -> Result<Page<Snapshot>, CallError> {
        let wanted = selection((wanted.ids, wanted.filters), SNAPSHOTS_PAGE, wanted.next_token);
        self.ec2("DescribeSnapshots", |world| {
            let (found, next_token) = world.describe_snapshots(&wanted)?;
            Ok(Page { items: found.into_iter().map(snapshot).collect(), next_token })
        })
        .await
    }

    async fn delete_snapshot(&self, snapshot: String) -> Result<(), CallError> {
        self.ec2("DeleteSnapshot", |world| world.delete_snapshot(&snapshot)).await
    }

    async fn describe_instance_status(&self, instance: String) -> Result<Vec<InstanceStatus>, CallError> {
        let wanted = selection((vec![instance], Vec::new()), SMALLEST_PAGE, None);
        self.ec2("DescribeInstanceStatus", |world| {
            let (found, _) = world.describe_instance_status(&wanted, true)?;
            Ok(found.into_iter().map(instance_status).collect())
        })
        .await
    }

    async fn describe_spot_price_history(&self, wanted: DescribeSpotPrices) -> Result<Page<SpotPriceRow>, CallError> {
        let items = self
            .on(("ec2", "DescribeSpotPriceHistory"), None, || self.cloud.spot_prices(&wanted.instance_types))
            .await?;
        Ok(Page { items, next_token: None })
    }

    async fn describe_instance_types(
        &self,
        wanted: DescribeInstanceTypes,
    ) -> Result<Page<InstanceTypeInfo>, CallError> {
        let patterns: Vec<String> = wanted.filters.into_iter().flat_map(|filter| filter.values).collect();
        let first = wanted.next_token.and_then(|token| token.parse().ok()).unwrap_or(0);
        self.ec2("DescribeInstanceTypes", |world| {
            let found = world.describe_instance_types(&patterns)?;
            let next_token = (first + SMALLEST_PAGE < found.len()).then(|| (first + SMALLEST_PAGE).to_string());
            let items = found.into_iter().skip(first).take(SMALLEST_PAGE);
            let info = |InstanceType { name, nvme_gb, gpus }| InstanceTypeInfo { name, nvme_gb, gpus };
            Ok(Page { items: items.map(info).collect(), next_token })
        })
        .await
    }

    async fn terminate_instances(&self, instance: String) -> Result<(), CallError> {
        let ids = [instance];
        self.ec2("TerminateInstances", |world| world.terminate_instances(&ids).map(drop)).await
    }

    async fn describe_instances(&self, instance: String) -> Result<Vec<Instance>, CallError> {
        let wanted = selection((vec![instance], Vec::new()), SMALLEST_PAGE, None);
        self.ec2("DescribeInstances", |world| {
            let (found, _) = world.describe_instances(&wanted)?;
            Ok(found.into_iter().map(|found| Instance { state: found.state.as_str().to_owned() }).collect())
        })
        .await
    }
}

/// The selection of a call, with this page size. A list of ids has no pages.
fn selection((ids, filters): (Vec<String>, Vec<calls::Filter>), page: usize, next_token: Option<String>) -> Selection {
    let filters = filters.into_iter().map(|filter| Filter { name: filter.name, values: filter.values }).collect();
    let max_results = ids.is_empty().then_some(page);
    Selection { ids, filters, max_results, next_token }
}

fn tags(tags: Vec<Tag>) -> ebs::Tags {
    ebs::Tags(tags.into_iter().collect())
}

fn volume(found: &ebs::Volume) -> Volume {
    Volume {
        id: found.id.clone(),
        state: found.state.as_str().to_owned(),
        zone: Some(found.zone.clone()),
        size_gib: Some(found.size_gib),
        tags: found.tags.0.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        attachments: found.attachment.iter().map(attachment).collect(),
    }
}

fn attachment(found: &ebs::Attachment) -> Attachment {
    Attachment { instance: Some(found.instance.clone()), state: found.state.as_str().to_owned() }
}

fn instance_status(found: &spotsweep_world::Instance) -> InstanceStatus {
    let checks = if found.impaired { "impaired" } else { "ok" };
    InstanceStatus { state: found.state.as_str().to_owned(), system: checks.to_owned(), instance: checks.to_owned() }
}

fn snapshot(found: &ebs::Snapshot) -> Snapshot {
    Snapshot {
        id: found.id.clone(),
        state: found.state.as_str().to_owned(),
        volume_size_gib: Some(found.volume_size_gib),
        full_bytes: Some(found.full_bytes()),
    }
}
