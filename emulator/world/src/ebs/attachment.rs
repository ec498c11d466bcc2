//! AttachVolume and DetachVolume (EC2 API reference), and the detachment of volumes from ended instances.

use std::sync::Arc;

use super::{Attachment, AttachmentState, Volume, VolumeOrder, VolumeState};
use crate::{ApiError, Instance, InstanceState, Timer, World};

/// The attachments that every instance has: its root volume and a network interface (fact 27).
const SHARED_ATTACHMENTS: usize = 2;

/// The parameters of AttachVolume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachVolume {
    /// The volume's id.
    pub volume: String,
    /// The instance's id. It must be in the same zone.
    pub instance: String,
    /// The device name, such as `/dev/sdf`.
    pub device: String,
}

/// The parameters of DetachVolume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetachVolume {
    /// The volume's id.
    pub volume: String,
    /// The instance to which the caller believes it is attached.
    pub instance: Option<String>,
    /// The device name that the caller believes it has there.
    pub device: Option<String>,
    /// Whether it is detached even if it is mounted.
    pub force: bool,
}

impl World {
    /// Attaches a volume.
    ///
    /// # Errors
    /// EC2's codes, of which `VolumeInUse` can mean that the same call has succeeded before.
    pub fn attach_volume(&mut self, request: &AttachVolume) -> Result<Attachment, ApiError> {
        let AttachVolume { volume: id, instance, device } = request;
        let volume = self.find_volume(id)?.clone();
        super::super::ec2::check_instance_id(instance)?;
        let host = self.instances.get(instance).ok_or_else(|| crate::instance::instance_not_found(&[instance]))?;
        check_volume(&volume)?;
        check_host(&volume, host)?;
        self.check_device(instance, device)?;
        self.ebs.attachments_made += 1;
        let attachment = Attachment {
            instance: instance.clone(),
            device: device.clone(),
            state: AttachmentState::Attaching,
            attached_at: self.now,
            force: false,
            number: self.ebs.attachments_made,
            disk: None,
        };
        if let Some(volume) = self.ebs.volumes.get_mut(id) {
            volume.state = VolumeState::InUse;
            volume.attachment = Some(attachment.clone());
        }
        let number = attachment.number;
        self.give_order(VolumeOrder::Attach { volume: id.clone(), instance: instance.clone(), number });
        Ok(attachment)
    }

    fn check_device(&self, instance: &str, device: &str) -> Result<(), ApiError> {
        let invalid = |message: String| Err(ApiError::ec2("InvalidParameterValue", message));
        if !is_device_name(device) {
            let message =
                format!("Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name.");
            return invalid(message);
        }
        let name = kernel_name(device);
        if name == "xvda" || self.volumes_at(instance).any(|(_, attachment)| kernel_name(&attachment.device) == name) {
            return invalid(format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            ));
        }
        let limit = self.trouble.attachment_limit;
        if self.volumes_at(instance).count() + SHARED_ATTACHMENTS >= limit {
            let message = format!("The instance '{instance}' has reached its limit of {limit} attachments.");
            return Err(ApiError::ec2("AttachmentLimitExceeded", message));
        }
        Ok(())
    }

    /// Continues an attachment once its device is in place, or ends it if that failed.
    pub(super) fn device_made(&mut self, volume: &str, number: u64, made: bool) {
        if made {
            self.after(self.settings.timings.attach, Timer::Attached { volume: volume.to_owned(), number });
        } else {
            self.set_detached(volume, number);
        }
    }

    pub(crate) fn attached(&mut self, volume: &str, number: u64) {
        let Some(attachment) = self.attachment(volume, number) else { return };
        if attachment.state != AttachmentState::Attaching {
            return;
        }
        attachment.state = AttachmentState::Attached;
        let instance = attachment.instance.clone();
        let disk = self.free_disk(&instance);
        if let Some(attachment) = self.attachment(volume, number) {
            attachment.disk = Some(disk);
        }
        self.disk_changed(instance, disk);
    }

    /// Detaches a volume. While the instance has it mounted it stays `busy`, unless the detachment is forced.
    ///
    /// # Errors
    /// `IncorrectState` for a volume that is not attached (yet), `InvalidAttachment.NotFound` if it is attached to
    /// another instance, `InvalidVolume.NotFound`.
    pub fn detach_volume(&mut self, request: &DetachVolume) -> Result<Attachment, ApiError> {
        let id = &request.volume;
        let volume = self.find_volume(id)?;
        let (mounted, state) = (volume.mounted, volume.state);
        let wrong = |state: &str| ApiError::ec2("IncorrectState", format!("Volume '{id}' is in the '{state}' state."));
        let Some(attachment) = &mut volume.attachment else { return Err(wrong(state.as_str())) };
        if let Some(other) = request.instance.as_ref().filter(|other| **other != attachment.instance) {
            let message = format!("The volume '{id}' is not attached to instance '{other}'.");
            return Err(ApiError::ec2("InvalidAttachment.NotFound", message));
        }
        if let Some(other) = request.device.as_ref().filter(|other| **other != attachment.device) {
            let message =
                format!("The volume {id} is not attached to instance {} as device {other}", attachment.instance);
            return Err(ApiError::ec2("InvalidAttachment.NotFound", message));
        }
        let before = attachment.state;
        attachment.force |= request.force;
        let detachable = match before {
            AttachmentState::Attaching => return Err(wrong("attaching")),
            AttachmentState::Detaching => false,
            AttachmentState::Attached | AttachmentState::Busy => attachment.force || !mounted,
        };
        if detachable {
            self.begin_detach(id);
        } else if before == AttachmentState::Attached {
            attachment.state = AttachmentState::Busy;
        }
        let attachment = self.volume(id).and_then(|volume| volume.attachment.clone());
        attachment.ok_or_else(|| wrong(VolumeState::Available.as_str()))
    }

    /// Sets whether the instance has a volume mounted. An unmount ends a `busy` detachment.
    pub fn set_mounted(&mut self, volume: &str, mounted: bool) {
        let Some(found) = self.ebs.volumes.get_mut(volume) else { return };
        found.mounted = mounted && found.attachment.is_some();
        if !mounted {
            Arc::make_mut(&mut found.files).sync_all();
        }
        let Some(attachment) = &mut found.attachment else { return };
        match attachment.state {
            AttachmentState::Busy if !mounted => self.begin_detach(volume),
            // The local stack found the device still mounted when it had to remove it.
            AttachmentState::Detaching if mounted && !attachment.force => attachment.state = AttachmentState::Busy,
            AttachmentState::Attaching
            | AttachmentState::Attached
            | AttachmentState::Busy
            | AttachmentState::Detaching => {}
        }
    }

    fn begin_detach(&mut self, id: &str) {
        let Some(volume) = self.ebs.volumes.get_mut(id) else { return };
        let Some(attachment) = &mut volume.attachment else { return };
        attachment.state = AttachmentState::Detaching;
        let (instance, number) = (attachment.instance.clone(), attachment.number);
        self.give_order(VolumeOrder::Detach { volume: id.to_owned(), instance, number });
    }

    /// Continues a detachment once the device is gone from the instance.
    pub(super) fn device_gone(&mut self, volume: &str, number: u64) {
        let Some(attachment) = self.attachment(volume, number) else { return };
        let instance = attachment.instance.clone();
        let alive = self.instances.get(&instance).is_some_and(|host| host.state.is_live());
        if alive {
            self.after(self.settings.timings.detach, Timer::Detached { volume: volume.to_owned(), number });
        } else {
            self.set_detached(volume, number);
        }
    }

    /// Ends an attachment. There is no EBS event for that (fact 11).
    pub(crate) fn set_detached(&mut self, volume: &str, number: u64) {
        let Some(Attachment { instance, disk, .. }) = self.attachment(volume, number).cloned() else { return };
        if let Some(volume) = self.ebs.volumes.get_mut(volume) {
            if volume.mounted {
                Arc::make_mut(&mut volume.files).lose(&mut self.losses);
            }
            volume.attachment = None;
            volume.mounted = false;
            volume.state = VolumeState::Available;
        }
        if let Some(disk) = disk {
            self.disk_changed(instance, disk);
        }
    }

    /// Detaches the volumes of a terminated instance. They are not deleted, because a volume that was attached after
    /// the launch has DeleteOnTermination=false (fact 28).
    pub(crate) fn detach_all(&mut self, instance: &str) {
        let lost: Vec<String> = self.volumes_at(instance).map(|(volume, _)| volume.id.clone()).collect();
        for id in lost {
            let volume = self.ebs.volumes.get_mut(&id);
            let Some(attachment) = volume.and_then(|volume| volume.attachment.as_mut()) else { continue };
            attachment.force = true;
            if attachment.state != AttachmentState::Detaching {
                self.begin_detach(&id);
            }
        }
    }

    /// Returns the attachment, if the volume still has it.
    fn attachment(&mut self, volume: &str, number: u64) -> Option<&mut Attachment> {
        self.ebs.volumes.get_mut(volume)?.attachment.as_mut().filter(|attachment| attachment.number == number)
    }
}

fn check_volume(volume: &Volume) -> Result<(), ApiError> {
    let id = &volume.id;
    match volume.state {
        VolumeState::Available => Ok(()),
        VolumeState::InUse => Err(ApiError::ec2("VolumeInUse", format!("{id} is already attached to an instance"))),
        VolumeState::Creating | VolumeState::Deleting | VolumeState::Error => {
            Err(ApiError::ec2("IncorrectState", format!("{id} is not 'available'.")))
        }
    }
}

/// Checks the instance. One that still boots takes no volumes: `IncorrectState` (EC2 API reference, "Error codes").
fn check_host(volume: &Volume, host: &Instance) -> Result<(), ApiError> {
    if host.zone != volume.zone {
        let message =
            format!("The volume '{}' is not in the same availability zone as instance '{}'", volume.id, host.id);
        return Err(ApiError::ec2("InvalidVolume.ZoneMismatch", message));
    }
    if host.state != InstanceState::Running {
        return Err(ApiError::ec2("IncorrectState", format!("Instance '{}' is not 'running'.", host.id)));
    }
    Ok(())
}

/// Returns the name that Xen's driver gives the device. `/dev/sdf` becomes `xvdf`, so two names can mean one device
/// (EC2 user guide, "Device name considerations").
fn kernel_name(device: &str) -> String {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    name.strip_prefix("sd").map_or_else(|| name.to_owned(), |letter| format!("xvd{letter}"))
}

/// Whether instances with hardware virtualization can have this name: `/dev/sd[a-z]`, `/dev/xvd[a-d][a-z]` and
/// `/dev/xvd[e-z]`, also without `/dev/` (EC2 user guide, "Device names for volumes"; AttachVolume in the EC2 API
/// reference). The root device's `/dev/xvda` counts, so that it can be refused as taken.
fn is_device_name(name: &str) -> bool {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    let letters = |start: &str| Some(name.strip_prefix(start)?.as_bytes());
    match (letters("sd"), letters("xvd")) {
        (Some([one]), _) => one.is_ascii_lowercase(),
        (_, Some([one])) => matches!(one, b'a' | b'e'..=b'z'),
        (_, Some([first, second])) => matches!(first, b'a'..=b'd') && second.is_ascii_lowercase(),
        (Some(_), _) | (None, Some(_) | None) => false,
    }
}
