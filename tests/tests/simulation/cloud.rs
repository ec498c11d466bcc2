//! The simulated AWS: what its services refuse, and what is left after each of their faults.

use serde_json::Value;
use spotsweep_control_plane::calls::{AssumeRole, CallError, Part};
use spotsweep_control_plane::settings::LEASE;
use spotsweep_simulation::cloud::multipart::{LEAST_BYTES, Uploads};
use spotsweep_simulation::cloud::sts;
use spotsweep_simulation::harness::Harness;
use spotsweep_simulation::invocation::InvocationFault;
use spotsweep_sweep_file::trials;

const KEY: &str = "results/s/trials.jsonl";

fn part(number: i32, etag: &str) -> Part {
    Part { number, etag: Some(etag.to_owned()) }
}

#[test]
fn only_parts_that_were_put_make_an_object_in_their_order() {
    let mut uploads = Uploads::default();
    let id = uploads.begin(KEY);
    let whole = uploads.put(KEY, &id, 1, vec![1; LEAST_BYTES]).unwrap();
    let small = uploads.put(KEY, &id, 2, vec![2]).unwrap();
    let last = uploads.put(KEY, &id, 3, vec![3]).unwrap();
    let cases = [
        (vec![], "MalformedXML"),
        (vec![part(3, &last), part(1, &whole)], "InvalidPartOrder"),
        (vec![part(1, &whole), part(1, &whole)], "InvalidPartOrder"),
        (vec![part(1, &whole), part(4, &last)], "InvalidPart"),
        (vec![part(1, &whole), part(3, &small)], "InvalidPart"),
        (vec![part(1, &whole), Part { number: 3, etag: None }], "InvalidPart"),
        (vec![part(1, &whole), part(2, &small), part(3, &last)], "EntityTooSmall"),
    ];
    for (parts, code) in cases {
        assert_eq!(uploads.complete(KEY, &id, &parts).unwrap_err().refusal(), Some(code), "{parts:?}");
    }
    let parts = [part(1, &whole), part(3, &last)];
    let elsewhere = uploads.complete("another", &id, &parts).unwrap_err();
    assert_eq!(elsewhere.refusal(), Some("NoSuchUpload"));
    assert_eq!(uploads.complete(KEY, &id, &parts).unwrap().unwrap().len(), LEAST_BYTES + 1);
    assert_eq!(uploads.put(KEY, &id, 4, vec![4]).unwrap_err().refusal(), Some("NoSuchUpload"));
    assert_eq!(uploads.put(KEY, &id, 10_001, vec![]).unwrap_err().refusal(), Some("InvalidArgument"));
}

#[test]
fn a_repeated_completion_makes_nothing_twice() {
    let mut uploads = Uploads::default();
    let answers = [(); 2].map(|()| {
        let id = uploads.begin(KEY);
        let etag = uploads.put(KEY, &id, 1, vec![1]).unwrap();
        let mut complete = || uploads.complete(KEY, &id, &[part(1, &etag)]);
        assert_eq!(complete().unwrap(), Some(vec![1]));
        complete()
    });
    let [forgotten, same] = answers;
    assert_eq!(forgotten.unwrap_err().refusal(), Some("NoSuchUpload"));
    assert_eq!(same.unwrap(), None);
}

#[test]
fn names_and_tags_are_refused_that_sts_refuses() {
    let of = |session: &str, tags: &[(&str, &str)]| AssumeRole {
        role: "trial".to_owned(),
        session: session.to_owned(),
        tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
    };
    let long = "x".repeat(257);
    let cases = [
        (of("trial-1-attempt-2", &[("sweep", "a_b-0123"), ("restores", "a-b/trials/3")]), None),
        (of("a", &[]), Some("ValidationError")),
        (of("trial 1", &[]), Some("ValidationError")),
        (of(&long[..65], &[]), Some("ValidationError")),
        (of("trial", &[("", "x")]), Some("ValidationError")),
        (of("trial", &[(&long[..129], "x")]), Some("ValidationError")),
        (of("trial", &[("sweep", &long)]), Some("ValidationError")),
        (of("trial", &[("sweep", "*")]), Some("ValidationError")),
        (of("trial", &[("sweep", "x"), ("Sweep", "x")]), Some("InvalidParameterValue")),
    ];
    for (wanted, code) in cases {
        let refused = sts::check(&wanted).err();
        assert_eq!(refused.as_ref().and_then(CallError::refusal), code, "{wanted:?}");
    }
}

/// A rejection quotes the invalid value, which may be longer than an event.
#[test]
fn a_rejection_fits_into_an_event() {
    let harness = Harness::new(1);
    let long = "x".repeat(1 << 20);
    let event =
        harness.put("long.yaml", &format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{snapshot: {long}}}}}\n"));
    let answer = harness.invoke(&event).answer.unwrap();
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(harness.cloud.take_announced().len(), 1);
}

/// `PutEvents` answers 200 although it has not taken the entry.
#[test]
fn what_the_bus_does_not_take_is_sent_again() {
    let mut harness = Harness::new(1);
    let event = harness.put("bad.yaml", "trials: []\n");
    let fault = InvocationFault { entry_error: Some("InternalFailure"), ..InvocationFault::default() };
    assert!(harness.invoke_with(&event, fault).answer.unwrap().is_err());
    assert!(harness.cloud.take_announced().is_empty());
    harness.pass(LEASE);
    assert!(harness.invoke(&event).answer.unwrap().is_ok());
    assert_eq!(harness.cloud.take_announced().len(), 1);
}

/// A sweep whose trials need more than one part.
fn dropped() -> (Harness, Value) {
    let values: Vec<u32> = (0..200).collect();
    let long = "x".repeat(60_000);
    let file = format!("method: grid\nparameters: {{a: {{value: {long}}}, b: {{values: {values:?}}}}}\n");
    let harness = Harness::new(1);
    let event = harness.put("large.yaml", &file);
    (harness, event)
}

fn lines(harness: &Harness) -> Option<Vec<u8>> {
    let (sweeps, _) = harness.store.state();
    harness.cloud.get(&trials::lines_key(&sweeps.first()?.id))
}

#[test]
fn trials_are_whole_whatever_call_of_their_upload_fails() {
    let (harness, event) = dropped();
    let undisturbed = harness.invoke(&event);
    let whole = lines(&harness).unwrap();
    let parts = undisturbed.calls.iter().filter(|call| call.action == "UploadPart").count();
    assert_eq!(parts, 2, "{} bytes", whole.len());
    let faults = (0..undisturbed.passed).flat_map(|point| {
        let fault = InvocationFault::default();
        [InvocationFault { fails_at: Some(point), ..fault }, InvocationFault { dies_at: Some(point), ..fault }]
    });
    for fault in faults {
        let (mut harness, event) = dropped();
        if !matches!(harness.invoke_with(&event, fault).answer, Some(Ok(_))) {
            // Lambda retries it.
            harness.pass(LEASE);
            let again = harness.invoke(&event).answer.unwrap();
            assert!(again.is_ok(), "{fault:?}: {again:?}");
        }
        assert!(lines(&harness).as_ref() == Some(&whole), "{fault:?}");
    }
}
