//! Tests of AttachVolume and DetachVolume, and of instances that end.

use spotsweep_world::InstanceState;
use spotsweep_world::ebs::{CreateVolume, DetachVolume};

use crate::lab::{Lab, UNTIL_RUNNING};

const A: &str = "us-east-1a";
const B: &str = "us-east-1b";
const UNKNOWN: &str = "i-0123456789abcdef0";

#[test]
fn attaching_is_refused_with_ec2s_codes() {
    let mut lab = Lab::new(100);
    let (host, other_host, doomed) = (lab.host(A), lab.host(A), lab.host(A));
    let (volume, taken, away) = (lab.volume(A), lab.volume(A), lab.volume(B));
    lab.attach(&taken, &host);
    lab.world.reclaim(&doomed, None, lab.now).unwrap();
    let creating =
        lab.world.create_volume(CreateVolume { zone: A.into(), size_gib: Some(1), ..CreateVolume::default() });
    let creating = creating.unwrap().id;
    let cases = [
        ("vol-0123456789abcdef0", host.as_str(), "/dev/sdg", "InvalidVolume.NotFound"),
        ("bad", &host, "/dev/sdg", "InvalidParameterValue"),
        (&volume, UNKNOWN, "/dev/sdg", "InvalidInstanceID.NotFound"),
        (&volume, "bad", "/dev/sdg", "InvalidInstanceID.Malformed"),
        (&creating, &host, "/dev/sdg", "IncorrectState"),
        (&away, &host, "/dev/sdg", "InvalidVolume.ZoneMismatch"),
        (&taken, &host, "/dev/sdg", "VolumeInUse"),
        (&taken, &other_host, "/dev/sdg", "VolumeInUse"),
        (&volume, &doomed, "/dev/sdg", "IncorrectState"),
        (&volume, &host, "/dev/sdf", "InvalidParameterValue"),
        (&volume, &host, "/dev/sda1", "InvalidParameterValue"),
        (&volume, &host, "xvda", "InvalidParameterValue"),
        (&volume, &host, "/dev/sdaa", "InvalidParameterValue"),
        (&volume, &host, "/dev/xvdzz", "InvalidParameterValue"),
        (&volume, &host, "xvdf", "InvalidParameterValue"),
        (&volume, &host, "", "InvalidParameterValue"),
    ];
    for (volume, host, device, wanted) in cases {
        assert_eq!(lab.try_attach(volume, host, device), Err(wanted), "{volume} {host} {device}");
    }
    lab.world.trouble_mut().attachment_limit = 3;
    assert_eq!(lab.try_attach(&volume, &host, "/dev/sdg"), Err("AttachmentLimitExceeded"), "28 are shared (fact 27)");
    lab.world.trouble_mut().attachment_limit = 4;
    lab.try_attach(&volume, &host, "xvdg").unwrap();
    assert_eq!((lab.state(&volume), lab.attachment(&volume)), ("in-use", "attaching"));
    assert_eq!(lab.try_detach(&volume, false), Err("IncorrectState"), "not before it is attached");
    lab.pass(100);
    assert_eq!(lab.attachment(&volume), "attached");
    assert_eq!(lab.world.delete_volume(&volume).unwrap_err().code, "VolumeInUse");
}

#[test]
fn a_booting_instance_takes_no_volume() {
    let mut lab = Lab::new(4);
    let volume = lab.volume(A);
    lab.world.set_zone_capacity(B, Some(0), lab.now);
    lab.world.set_zone_capacity("us-east-1c", Some(0), lab.now);
    lab.submit(serde_json::json!({}));
    lab.pass(500);
    let host = lab.instances(InstanceState::Pending)[0].clone();
    assert_eq!(lab.try_attach(&volume, &host, "/dev/sdf"), Err("IncorrectState"));
    lab.pass(UNTIL_RUNNING);
    lab.attach(&volume, &host);
}

#[test]
fn a_mounted_volume_is_busy_until_it_is_unmounted_or_forced() {
    let mut lab = Lab::new(4);
    let (host, volume) = (lab.host(A), lab.volume(A));
    assert_eq!(lab.try_detach(&volume, false), Err("IncorrectState"), "available");
    lab.attach(&volume, &host);
    let other_device = Some("/dev/sdg".to_owned());
    let other_device = DetachVolume { volume: volume.clone(), instance: None, device: other_device, force: true };
    assert_eq!(lab.world.detach_volume(&other_device).unwrap_err().code, "InvalidAttachment.NotFound");
    let elsewhere = DetachVolume { volume: volume.clone(), instance: Some(UNKNOWN.into()), device: None, force: false };
    assert_eq!(lab.world.detach_volume(&elsewhere).unwrap_err().code, "InvalidAttachment.NotFound");
    for force in [false, true] {
        lab.world.set_mounted(&volume, true);
        lab.try_detach(&volume, false).unwrap();
        lab.pass(3_600_000);
        assert_eq!((lab.state(&volume), lab.attachment(&volume)), ("in-use", "busy"));
        if force {
            lab.try_detach(&volume, true).unwrap();
        } else {
            lab.world.set_mounted(&volume, false);
        }
        assert_eq!(lab.attachment(&volume), "detaching");
        lab.try_detach(&volume, false).unwrap();
        lab.pass(99);
        assert_eq!(lab.state(&volume), "in-use");
        lab.pass(1);
        assert_eq!((lab.state(&volume), lab.attachment(&volume)), ("available", "none"));
        let host = lab.host(A);
        lab.attach(&volume, &host);
    }
    let events = lab.ebs_events();
    assert_eq!(events.len(), 1, "attaching and detaching have no event (fact 11): {events:?}");
}

#[test]
fn a_link_may_lead_to_the_disk_of_another_volume_for_a_while() {
    let mut lab = Lab::new(4);
    let (host, volume, other) = (lab.host(A), lab.volume(A), lab.volume(A));
    let behind = |lab: &Lab, volume: &str| lab.world.behind_link(&host, volume).map(str::to_owned);
    lab.attach(&volume, &host);
    assert_eq!(behind(&lab, &volume), Some(volume.clone()), "at once, where udev does not lag");
    lab.world.trouble_mut().links_lag_ms = 1000;
    lab.try_detach(&volume, false).unwrap();
    lab.pass(100);
    assert_eq!(behind(&lab, &volume), None, "its disk is gone, and the link is still there");
    lab.attach(&other, &host);
    assert_eq!(behind(&lab, &volume), Some(other.clone()), "the disk's number is another volume's by now");
    lab.try_attach(&volume, &host, "/dev/sdg").unwrap();
    lab.pass(100);
    assert_eq!(behind(&lab, &volume), Some(other.clone()), "even though the volume is attached again");
    lab.pass(1000);
    assert_eq!([&volume, &other].map(|id| behind(&lab, id)), [Some(volume.clone()), Some(other.clone())]);
    lab.world.reclaim(&host, None, lab.now).unwrap();
    lab.pass(2000);
    assert_eq!([&volume, &other].map(|id| behind(&lab, id)), [None, None]);
}

#[test]
fn a_dead_instance_lets_its_volumes_go_without_a_word() {
    let mut lab = Lab::new(100);
    let host = lab.host(A);
    let volumes = [lab.volume(A), lab.volume(A), lab.volume(A)];
    lab.attach(&volumes[0], &host);
    lab.world.write_file(&volumes[0], &host, "checkpoint", "42").unwrap();
    lab.world.set_mounted(&volumes[0], true);
    lab.try_attach(&volumes[1], &host, "/dev/sdg").unwrap();
    lab.pass(100);
    lab.try_detach(&volumes[1], false).unwrap();
    lab.try_attach(&volumes[2], &host, "/dev/sdh").unwrap();
    let before = lab.ebs_events().len();
    lab.world.reclaim(&host, None, lab.now).unwrap();
    assert!(lab.world.write_file(&volumes[0], &host, "checkpoint", "43").is_err(), "its machine is dead");
    lab.pass(300);
    assert_eq!(lab.instances(InstanceState::Terminated), [host]);
    assert_eq!(volumes.each_ref().map(|id| lab.state(id)), ["available"; 3]);
    assert_eq!(
        lab.world.files_of_volume(&volumes[0]).content("checkpoint"),
        Some(&b"42"[..]),
        "what was attached later stays (fact 28)"
    );
    lab.pass(10_000);
    assert_eq!(volumes.each_ref().map(|id| lab.attachment(id)), ["none"; 3], "no late timer attaches it again");
    assert_eq!(lab.ebs_events().len(), before);
    let next = lab.host(A);
    lab.attach(&volumes[0], &next);
    assert_eq!(lab.world.file_system(&volumes[0], &next).unwrap().content("checkpoint"), Some(&b"42"[..]));
}
