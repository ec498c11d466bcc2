use super::*;

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

fn seen(status: JobStatus, ended: &[Attempt], current: Attempt) -> Observation {
    let reason = Some(format!("{status:?} after {}", ended.len()).into());
    Observation {
        job: JobId::from("job:4".to_owned()),
        status,
        reason,
        ended: ended.to_vec(),
        current,
        container_instance: None,
        was_stopped: false,
    }
}

/// Returns Batch's observations of a reclaimed first attempt and a successful second one.
fn history() -> Vec<Observation> {
    let first = Attempt { started_at: at(10), log_stream: Some("log/1".into()), ..Attempt::default() };
    let reclaimed = Attempt { stopped_at: at(20), reason: Some("Host EC2 (…) terminated.".into()), ..first.clone() };
    let second = Attempt { started_at: at(30), log_stream: Some("log/2".into()), ..Attempt::default() };
    let good = Attempt { stopped_at: at(50), exit_code: Some(0), ..second.clone() };
    vec![
        seen(JobStatus::Starting, &[], Attempt::default()),
        seen(JobStatus::Running, &[], first),
        seen(JobStatus::Runnable, std::slice::from_ref(&reclaimed), Attempt::default()),
        seen(JobStatus::Starting, std::slice::from_ref(&reclaimed), Attempt::default()),
        seen(JobStatus::Running, std::slice::from_ref(&reclaimed), second),
        seen(JobStatus::Succeeded, &[reclaimed, good], Attempt::default()),
    ]
}

#[test]
fn every_order_and_repetition_ends_in_the_same_trial() {
    let observations = history();
    let blank = || Trial::new(SweepId::derive("b", "k", "v"), 4, JobId::from("job:4".to_owned()));
    let mut expected = blank();
    observations.iter().for_each(|observation| expected.observe(0, observation));
    assert_eq!((expected.status, expected.ended), (JobStatus::Succeeded, 2));
    assert_eq!(expected.run_seconds(), 30.0);

    let mut order: Vec<usize> = (0..observations.len()).collect();
    let mut orders = 0;
    permute(&mut order, 0, &mut |order| {
        let mut trial = blank();
        for (place, &index) in order.iter().enumerate() {
            trial.observe(0, &observations[index]);
            trial.observe(0, &observations[order[place / 2]]);
        }
        assert_eq!(trial, expected, "order {order:?}");
        orders += 1;
    });
    assert_eq!(orders, 720);
}

#[test]
fn a_timeout_wins_over_the_exit_code_of_an_interruption() {
    let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 4, JobId::from("job:4".to_owned()));
    let ended = |reason: &str| Attempt {
        started_at: at(10),
        stopped_at: at(20),
        exit_code: Some(INTERRUPTED_EXIT_CODE),
        reason: Some(reason.into()),
        ..Attempt::default()
    };
    for (last, is_worn_out) in
        [("Essential container in task exited", true), ("Job attempt duration exceeded timeout", false)]
    {
        let mut attempts = vec![ended("Essential container in task exited"); 9];
        attempts.push(ended(last));
        let mut trial = trial.clone();
        trial.observe(0, &seen(JobStatus::Failed, &attempts, Attempt::default()));
        assert_eq!((trial.ended, trial.is_worn_out(20)), (10, is_worn_out), "{last}");
        assert_eq!(trial.attempts[&10].was_interrupted(), is_worn_out);
    }
    // A job with three attempts, of which the first one does not count.
    let mut short = trial.clone();
    let mut attempts = vec![ended("Essential container in task exited"); 3];
    attempts[0].fetch = Some(Fetch { bytes: 0, of_bytes: 1, seconds: 1 });
    short.observe(0, &seen(JobStatus::Failed, &attempts, Attempt::default()));
    short.attempt(1).fetch = attempts[0].fetch;
    assert!(short.is_worn_out(3) && short.tried() == 2 && !short.is_worn_out(20));
    // The timeout counts whatever the attempt itself has reported before.
    trial.attempt(1).merge(&ended("Job attempt duration exceeded timeout"));
    assert!(trial.attempts[&1].has_timed_out());
}

fn permute(order: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == order.len() {
        return visit(order);
    }
    for other in from..order.len() {
        order.swap(from, other);
        permute(order, from + 1, visit);
        order.swap(from, other);
    }
}
