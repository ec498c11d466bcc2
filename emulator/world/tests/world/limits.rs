//! Tests of request limits, random throttling, and eventual consistency.

use spotsweep_world::ebs::{CreateSnapshot, CreateVolume};
use spotsweep_world::{Failure, Filter, Selection, Service, World};

use crate::lab::Lab;

/// Returns how many of `calls` calls are not throttled.
fn granted(lab: &mut Lab, service: Service, action: &str, calls: usize) -> usize {
    let mut granted = 0;
    for _ in 0..calls {
        match lab.world.call(service, action, lab.now, |_: &mut World| Ok(())) {
            Ok(()) => granted += 1,
            Err(Failure::Api(error)) => {
                let wanted =
                    if service == Service::Ec2 { ("RequestLimitExceeded", 503) } else { (error.code, error.status) };
                assert_eq!((error.code, error.status), wanted);
            }
            Err(Failure::Dropped) => panic!("nothing drops calls here"),
        }
    }
    granted
}

#[test]
fn buckets_are_as_large_and_fill_up_as_fast_as_documented() {
    let mut lab = Lab::new(4);
    assert_eq!(granted(&mut lab, Service::Ec2, "CreateVolume", 200), 200, "off unless set");
    lab.world.trouble_mut().request_limits = true;
    // A case has an action, its burst and its refill per second (fact 23).
    let cases = [
        ("CreateVolume", 100, 5),
        ("DeleteSnapshot", 100, 5),
        ("CreateTags", 100, 10),
        ("AttachVolume", 50, 5),
        ("DetachVolume", 50, 5),
        ("DescribeVolumes", 100, 20),
    ];
    for (action, burst, refill) in cases {
        assert_eq!(granted(&mut lab, Service::Ec2, action, 200), burst, "{action}");
        lab.pass(1000);
        assert_eq!(granted(&mut lab, Service::Ec2, action, 200), refill, "{action}");
    }
    let everything = Selection::default();
    let answered = (0..100).filter(|_| lab.world.describe_volumes(&everything).is_ok()).count();
    assert_eq!(answered, 50, "unfiltered and unpaginated");
    let some = Selection { filters: vec![Filter::new("status", "available")], ..Selection::default() };
    assert!(lab.world.describe_volumes(&some).is_ok());
}

/// "Wait at least 15 seconds between concurrent volume snapshots" (EC2 API reference, error codes).
#[test]
fn one_volume_takes_one_snapshot_in_fifteen_seconds() {
    let mut lab = Lab::new(4);
    let request = CreateVolume { zone: "us-east-1a".into(), size_gib: Some(1), ..CreateVolume::default() };
    let volumes = [(); 2].map(|()| lab.world.create_volume(request.clone()).unwrap().id);
    lab.pass(60_000);
    let take = |lab: &mut Lab, volume: usize| {
        let request = CreateSnapshot { volume: volumes[volume].clone(), ..CreateSnapshot::default() };
        lab.world.create_snapshot(request).map(drop).map_err(|error| error.code)
    };
    assert_eq!((take(&mut lab, 0), take(&mut lab, 0)), (Ok(()), Ok(())), "off unless set");
    lab.world.trouble_mut().request_limits = true;
    lab.pass(14_999);
    assert_eq!(take(&mut lab, 0), Err("SnapshotCreationPerVolumeRateExceeded"));
    assert_eq!(take(&mut lab, 1), Ok(()));
    lab.pass(1);
    assert_eq!(take(&mut lab, 0), Ok(()));
}

#[test]
fn a_share_of_one_services_calls_is_throttled_by_the_seed() {
    let run = || {
        let mut lab = Lab::new(4);
        lab.world.trouble_mut().throttle_share.insert(Service::Ec2, 0.3);
        assert_eq!(granted(&mut lab, Service::Batch, "DescribeJobs", 1000), 1000);
        granted(&mut lab, Service::Ec2, "DetachVolume", 1000)
    };
    let first = run();
    assert!((640..760).contains(&first), "{first}");
    assert_eq!(run(), first);
}

#[test]
fn what_was_just_made_is_not_found_yet() {
    let mut lab = Lab::new(4);
    lab.world.trouble_mut().visible_after_ms = 1000;
    let request = CreateVolume {
        zone: "us-east-1a".into(),
        size_gib: Some(1),
        client_token: Some("t".into()),
        ..CreateVolume::default()
    };
    let id = lab.world.create_volume(request.clone()).unwrap().id;
    lab.pass(999);
    let by_id = Selection { ids: vec![id.clone()], ..Selection::default() };
    let by_filter = Selection { filters: vec![Filter::new("volume-id", &*id)], ..Selection::default() };
    assert_eq!(lab.world.describe_volumes(&by_id).unwrap_err().code, "InvalidVolume.NotFound");
    assert!(lab.world.describe_volumes(&by_filter).unwrap().0.is_empty());
    assert_eq!(lab.try_snapshot(&id), Err("InvalidVolume.NotFound"));
    assert_eq!(lab.world.create_volume(request).unwrap().id, id, "a token knows at once");
    lab.pass(1);
    assert_eq!(lab.world.describe_volumes(&by_id).unwrap().0.len(), 1);
    assert_eq!(lab.world.describe_volumes(&by_filter).unwrap().0.len(), 1);
}
