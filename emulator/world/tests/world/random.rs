//! Tests that the World keeps its rules, whatever is called in whatever order.

use std::collections::BTreeSet;

use spotsweep_world::InstanceState;
use spotsweep_world::ebs::{CreateVolume, VolumeState};

use crate::lab::Lab;

const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

/// Random numbers from a seed (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &'a [String]) -> &'a str {
        if from.is_empty() { "vol-0123456789abcdef0" } else { &from[self.below(from.len())] }
    }
}

fn step(lab: &mut Lab, dice: &mut Dice) {
    let volumes: Vec<String> = lab.world.volumes().map(|volume| volume.id.clone()).collect();
    let snapshots: Vec<String> = lab.world.snapshots().map(|snapshot| snapshot.id.clone()).collect();
    let hosts = lab.instances(InstanceState::Running);
    let volume = dice.pick(&volumes).to_owned();
    let host = hosts.get(dice.below(hosts.len().max(1))).cloned().unwrap_or_default();
    // Refusals are possible, because only the rules below count.
    match dice.below(12) {
        0 => {
            let snapshot = (dice.below(2) == 0).then(|| snapshots.first().cloned()).flatten();
            let size_gib = Some(10);
            let zone = ZONES[dice.below(2)].to_owned();
            let request = CreateVolume { zone, size_gib, snapshot, ..CreateVolume::default() };
            let _ = lab.world.create_volume(request);
        }
        1 | 2 => drop(lab.try_attach(&volume, &host, ["/dev/sdf", "/dev/sdg", "/dev/sdh"][dice.below(3)])),
        3 => drop(lab.try_detach(&volume, dice.below(3) == 0)),
        4 => lab.world.set_mounted(&volume, dice.below(2) == 0),
        5 => drop(lab.world.delete_volume(&volume)),
        6 => drop(lab.try_snapshot(&volume)),
        7 => drop(lab.world.delete_snapshot(dice.pick(&snapshots))),
        8 if dice.below(4) == 0 => drop(lab.world.reclaim(&host, None, lab.now)),
        9 => lab.world.trouble_mut().failing_volumes += u32::from(dice.below(5) == 0),
        _ => drop(lab.world.write_file(&volume, &host, "file", vec![1; dice.below(1000)])),
    }
    lab.pass(dice.below(200) as u64);
    if lab.instances(InstanceState::Running).is_empty() {
        lab.host(ZONES[dice.below(2)]);
    }
}

fn check(lab: &Lab) {
    let mut places = BTreeSet::new();
    for volume in lab.world.volumes() {
        assert_eq!(volume.attachment.is_some(), volume.state == VolumeState::InUse, "{volume:?}");
        let Some(attachment) = &volume.attachment else {
            assert!(!volume.mounted, "{volume:?}");
            continue;
        };
        assert!(places.insert((&attachment.instance, &attachment.device)), "two volumes at one place");
        let host = lab.world.instance(&attachment.instance).unwrap();
        assert_eq!(host.zone, volume.zone);
        assert_ne!(host.state, InstanceState::Terminated, "a dead instance holds nothing");
    }
    for snapshot in lab.world.snapshots() {
        assert!(snapshot.changed_bytes.is_some_and(|bytes| bytes <= 1000), "{snapshot:?}");
    }
}

#[test]
fn rules_hold_at_every_step_and_the_same_seed_gives_the_same_events() {
    let run = |seed| {
        let (mut lab, mut dice) = (Lab::new(100), Dice(seed));
        for _ in 0..1500 {
            step(&mut lab, &mut dice);
            check(&lab);
        }
        let events = lab.ebs_events();
        for kind in
            ["createVolume available", "createVolume failed", "deleteVolume deleted", "createSnapshot succeeded"]
        {
            assert!(events.iter().any(|event| event.starts_with(kind)), "never: {kind}");
        }
        serde_json::to_string(&lab.events).unwrap()
    };
    for seed in 1..=5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
