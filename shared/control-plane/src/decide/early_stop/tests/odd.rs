//! Figures that must not decide about other trials.

use super::*;

/// Whoever knows the claim token can claim a waiting attempt and send reports for it.
#[test]
fn figures_before_the_container_has_started_decide_nothing() {
    let mut scene = started("hyperband");
    let claim = scene.ask(5, 1, Ask::Claim(Default::default()));
    assert!(!matches!(claim, Some(Reply::Refused { .. })), "{claim:?}");
    for ended in [None, Some(Ending::Released { rollback: None })] {
        scene.reports(5, 1, &[at(3, 0.9), at(9, 0.9)], ended);
        assert!(scene.trials[&5].rungs.is_empty() && scene.trials[&5].compared.is_empty());
    }
    assert!(!scene.stops(3, &[at(3, 0.75)]), "0.7 is the cut of those that train");
    scene.runs(5, 1);
    scene.stops(5, &[at(3, 0.9)]);
    assert_eq!(scene.trials[&5].rungs.len(), 1, "reported again, it counts");
}

#[test]
fn one_odd_figure_stops_no_trial() {
    for rule in ["hyperband", "interruption"] {
        let mut scene = Scene::new(rule);
        for (index, value) in [(0, 9e124), (1, 0.8), (2, 0.6)] {
            scene.claim(index, 1);
            assert!(!scene.stops(index, &[at(3, value)]), "{rule} {value}");
        }
        scene.ends(2, JobStatus::Runnable, None);
        assert!(scene.trials[&2].stopped.is_none(), "{rule}");
    }
}
