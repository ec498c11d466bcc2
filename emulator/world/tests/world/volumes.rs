//! Tests of CreateVolume, DeleteVolume, client tokens and tags.

use serde_json::{Value, json};
use spotsweep_world::ebs::{CreateVolume, Tags};
use spotsweep_world::{Filter, Selection};

use crate::lab::Lab;

const ZONE: &str = "us-east-1a";

fn request() -> CreateVolume {
    CreateVolume { zone: ZONE.into(), size_gib: Some(10), ..CreateVolume::default() }
}

fn code(lab: &mut Lab, request: CreateVolume) -> &'static str {
    lab.world.create_volume(request).map_or_else(|error| error.code, |_| "ok")
}

/// Returns the fields of an event without their values.
fn shape(event: &Value) -> Vec<String> {
    let mut keys: Vec<String> = event.as_object().unwrap().keys().cloned().collect();
    keys.extend(event["detail"].as_object().unwrap().keys().map(|key| format!("detail.{key}")));
    keys.sort();
    keys
}

#[test]
fn a_volume_lives_and_dies_with_the_events_that_aws_documents() {
    let mut lab = Lab::new(4);
    let id = lab.world.create_volume(request()).unwrap().id;
    assert!(id.starts_with("vol-") && id.len() == 21, "{id}");
    lab.pass(149);
    assert_eq!((lab.state(&id), lab.events.len()), ("creating", 0));
    assert_eq!(lab.world.delete_volume(&id).unwrap_err().code, "IncorrectState");
    lab.pass(1);
    assert_eq!(lab.state(&id), "available");
    let volume = lab.world.volume(&id).unwrap();
    assert_eq!((volume.volume_type.as_str(), volume.size_gib, volume.encrypted), ("gp2", 10, false), "defaults");
    lab.world.delete_volume(&id).unwrap();
    assert_eq!(lab.state(&id), "deleting");
    assert_eq!(lab.world.delete_volume(&id).unwrap_err().code, "IncorrectState");
    lab.pass(100);
    assert_eq!(lab.state(&id), "gone");
    assert_eq!(lab.world.delete_volume(&id).unwrap_err().code, "InvalidVolume.NotFound");
    assert_eq!(lab.ebs_events(), [format!("createVolume available {id}"), format!("deleteVolume deleted {id}")]);
    // The sample is AWS's "EBS Volume Notification" for createVolume.
    let sample = json!({"version": "0", "id": "", "detail-type": "", "source": "", "account": "", "time": "",
        "region": "", "resources": [], "detail": {"result": "", "cause": "", "event": "", "request-id": ""}});
    assert!(lab.events.iter().all(|event| shape(event) == shape(&sample)));
    assert_eq!(lab.events[0]["resources"], json!([format!("arn:aws:ec2:us-east-1:000000000000:volume/{id}")]));
}

#[test]
fn bad_requests_are_refused_with_ec2s_codes() {
    let mut lab = Lab::new(4);
    let big = lab.create(CreateVolume { size_gib: Some(20), ..request() });
    let pending = lab.try_snapshot(&big).unwrap();
    let snapshot = lab.snapshot(&big);
    let pending_again = lab.try_snapshot(&big).unwrap();
    let from = |id: &str| CreateVolume { snapshot: Some(id.to_owned()), size_gib: None, ..request() };
    let many: Vec<(String, String)> = (0..51).map(|n| (n.to_string(), String::new())).collect();
    let cases = [
        (CreateVolume { zone: String::new(), ..request() }, "MissingParameter"),
        (CreateVolume { size_gib: None, ..request() }, "MissingParameter"),
        (CreateVolume { zone: "us-east-1z".into(), ..request() }, "InvalidZone.NotFound"),
        (CreateVolume { size_gib: Some(0), ..request() }, "InvalidParameterValue"),
        (CreateVolume { size_gib: Some(16_385), ..request() }, "InvalidParameterValue"),
        (CreateVolume { size_gib: Some(16_385), volume_type: Some("gp3".into()), ..request() }, "ok"),
        (CreateVolume { volume_type: Some("bad".into()), ..request() }, "InvalidParameterValue"),
        (CreateVolume { client_token: Some("x".repeat(65)), ..request() }, "InvalidParameterValue"),
        (CreateVolume { initialization_rate: Some(200), ..request() }, "InvalidParameterCombination"),
        (CreateVolume { initialization_rate: Some(99), ..from(&snapshot) }, "InvalidParameterValue"),
        (CreateVolume { initialization_rate: Some(300), ..from(&snapshot) }, "ok"),
        (CreateVolume { tags: [("aws:x", "")].into(), ..request() }, "InvalidParameterValue"),
        (CreateVolume { tags: Tags(many.into_iter().collect()), ..request() }, "TagLimitExceeded"),
        (from("snap-0123456789abcdef0"), "InvalidSnapshot.NotFound"),
        (from("vol-0123456789abcdef0"), "InvalidParameterValue"),
        (from(&pending_again), "IncorrectState"),
        (from(&pending), "ok"),
        (CreateVolume { size_gib: Some(19), ..from(&snapshot) }, "InvalidParameterValue"),
        (CreateVolume { size_gib: Some(21), ..from(&snapshot) }, "ok"),
    ];
    for (request, wanted) in cases {
        assert_eq!(code(&mut lab, request.clone()), wanted, "{request:?}");
    }
}

#[test]
fn a_token_makes_one_volume_and_is_burned_with_it() {
    let mut lab = Lab::new(4);
    let with = |token: &str| CreateVolume { client_token: Some(token.into()), ..request() };
    let first = lab.world.create_volume(with("a")).unwrap().id;
    assert_eq!(lab.world.create_volume(with("a")).unwrap().id, first, "the same again");
    assert_ne!(lab.world.create_volume(with("b")).unwrap().id, first);
    let other = CreateVolume { size_gib: Some(11), ..with("a") };
    assert_eq!(code(&mut lab, other), "IdempotentParameterMismatch");
    lab.pass(150);
    assert_eq!(lab.world.create_volume(with("a")).unwrap().state.as_str(), "available");
    lab.world.delete_volume(&first).unwrap();
    assert_eq!(code(&mut lab, with("a")), "IdempotentParameterMismatch", "its volume is deleted");

    lab.world.trouble_mut().failing_volumes = 1;
    let failed = lab.world.create_volume(with("c")).unwrap().id;
    lab.pass(150);
    assert_eq!(lab.state(&failed), "error");
    assert_eq!(lab.ebs_events().last().unwrap(), &format!("createVolume failed {failed}"));
    assert_eq!(code(&mut lab, with("c")), "IdempotentParameterMismatch", "burned (fact 26)");
    lab.pass(5000);
    assert_eq!(lab.state(&failed), "gone");
    assert_eq!(code(&mut lab, with("c")), "IdempotentParameterMismatch");
    assert_eq!(code(&mut lab, with("c-2")), "ok");
    lab.pass(12 * 3_600_000);
    assert_eq!(code(&mut lab, with("c")), "ok", "forgotten after about 12 h");
    assert_eq!(lab.world.create_volume(with("b")).unwrap().state.as_str(), "available", "not while it lives");
}

#[test]
fn capacity_and_quota_refuse_before_anything_is_made() {
    let mut lab = Lab::new(4);
    let volume = lab.volume(ZONE);
    let snapshot = lab.snapshot(&volume);
    let fast = CreateVolume { snapshot: Some(snapshot), initialization_rate: Some(200), ..request() };
    lab.world.trouble_mut().zones_without_volume_capacity.insert(ZONE.into());
    assert_eq!(code(&mut lab, request()), "InsufficientVolumeCapacity");
    assert_eq!(code(&mut lab, CreateVolume { zone: "us-east-1b".into(), ..request() }), "ok");
    lab.world.trouble_mut().zones_without_volume_capacity.clear();
    lab.world.trouble_mut().refuse_initialization_rate = true;
    assert_eq!(code(&mut lab, fast.clone()), "ResourceLimitExceeded");
    assert_eq!(code(&mut lab, CreateVolume { initialization_rate: None, ..fast }), "ok", "the fall-back (fact 25)");
    lab.world.trouble_mut().volume_limit = Some(3);
    assert_eq!(code(&mut lab, request()), "VolumeLimitExceeded");
    assert_eq!(lab.world.volumes().count(), 3);
}

#[test]
fn tags_and_filters_find_what_belongs_to_a_trial() {
    let mut lab = Lab::new(4);
    for n in 0..7 {
        let trial = n.to_string();
        let tags = Tags::from([("spotsweep:sweep", "s1"), ("spotsweep:trial", trial.as_str())]);
        lab.create(CreateVolume { tags, ..request() });
    }
    let plain = lab.volume("us-east-1b");
    let mut found = |filters: &[(&str, &str)], max_results| {
        let filters = filters.iter().map(|(name, value)| Filter::new(*name, *value)).collect();
        let mut wanted = Selection { filters, max_results, ..Selection::default() };
        let mut pages = Vec::new();
        loop {
            let (volumes, next) = lab.world.describe_volumes(&wanted).map_err(|error| error.code)?;
            pages.push(volumes.len());
            if next.is_none() {
                return Ok::<_, &str>(pages);
            }
            wanted.next_token = next;
        }
    };
    assert_eq!(found(&[("tag:spotsweep:trial", "3")], None), Ok(vec![1]));
    assert_eq!(found(&[("tag-key", "spotsweep:*"), ("status", "available")], Some(5)), Ok(vec![5, 2]));
    assert_eq!(found(&[("availability-zone", "us-east-1b")], None), Ok(vec![1]));
    assert_eq!(found(&[("status", "in-use")], None), Ok(vec![0]));
    assert_eq!(found(&[], Some(4)), Err("InvalidParameterValue"));
    assert_eq!(found(&[("no-such", "x")], None), Err("InvalidParameterValue"));
    let tags = Tags::from([("Name", "mine"), ("spotsweep:trial", "99")]);
    assert_eq!(
        lab.world.create_tags(&["vol-0123456789abcdef0".into()], &tags).unwrap_err().code,
        "InvalidVolume.NotFound"
    );
    assert_eq!(lab.world.create_tags(&["ami-1".into()], &tags).unwrap_err().code, "InvalidID");
    lab.world.create_tags(std::slice::from_ref(&plain), &tags).unwrap();
    let left = lab.world.leftovers();
    assert_eq!((left.volumes.len(), left.snapshots.len(), left.attachments.len()), (8, 0, 0));
    let tagged = left.volumes.iter().find(|volume| volume.id == plain).unwrap();
    assert_eq!(tagged.tags["Name"], "mine");
    let by_id = Selection { ids: vec![plain.clone(), "vol-0123456789abcdef0".into()], ..Selection::default() };
    assert_eq!(lab.world.describe_volumes(&by_id).unwrap_err().code, "InvalidVolume.NotFound");
}
