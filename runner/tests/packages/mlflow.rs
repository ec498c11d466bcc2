//! Tests with the server and the client of MLflow itself.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use spotsweep_needs::opted_in;
use tokio::process::Command;

use super::SCRIPTS;
use crate::world::{World, generous, until, well};

/// The process group of the server, which has workers.
struct Server(Pid);

impl Drop for Server {
    fn drop(&mut self) {
        kill_process_group(self.0, Signal::KILL).unwrap();
    }
}

/// Starts MLflow's server with an empty store.
async fn server(world: &World, python: &str) -> (Server, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = format!("sqlite:///{}", world.path("mlflow.db").display());
    let artifacts = world.path("artifacts");
    let server = Command::new(python)
        .args(["-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1", "--backend-store-uri", &store])
        .args(["--port", &port.to_string(), "--default-artifact-root"])
        .arg(artifacts)
        .current_dir(world.path("."))
        .stdout(Stdio::null())
        .stderr(fs::File::create(world.path("mlflow.log")).unwrap())
        .env("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
        .process_group(0)
        .spawn()
        .unwrap();
    let server = Server(Pid::from_raw(server.id().unwrap().try_into().unwrap()).unwrap());
    let address = format!("127.0.0.1:{port}");
    until("MLflow's server answers", || std::net::TcpStream::connect(&address).is_ok()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    (server, format!("http://{address}"))
}

/// The runs of the experiment as MLflow's client lists them, each with its steps of `accuracy`.
async fn runs(python: &str, url: &str) -> String {
    let script = "import mlflow\n\
        client = mlflow.MlflowClient()\n\
        experiment = client.get_experiment_by_name('digits').experiment_id\n\
        for run in sorted(client.search_runs([experiment]), key=lambda run: run.info.start_time):\n\
        \x20   steps = [metric.step for metric in client.get_metric_history(run.info.run_id, 'accuracy')]\n\
        \x20   print(run.data.tags['spotsweep.trial'], run.data.tags['spotsweep.sweep'], steps)\n";
    let output = Command::new(python).args(["-c", script]).env("MLFLOW_TRACKING_URI", url).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attempts_of_a_trial_are_one_run_of_mlflow() {
    let Some(python) = opted_in("SPOTSWEEP_PACKAGES_PYTHON") else { return };
    for (option, expected_code, expected) in [
        ("--same", Some(0), "s-1-7 s-1 [1, 2, 3, 4]\n"),
        // The parameter changes in the second attempt, so the third makes a separate run.
        ("--differs", Some(75), "s-1-7 s-1 [1, 2]\ns-1-7 s-1 [3, 4]\n"),
    ] {
        let world = World::start(generous, well).await;
        fs::create_dir_all(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        let (_server, url) = server(&world, &python).await;
        let script = format!("{SCRIPTS}/mlflow_run.py");
        let mut codes = Vec::new();
        for attempt in ["1", "2", "3"] {
            let root = world.path(&format!("root-{attempt}"));
            let extra = [
                ("SPOTSWEEP_ROOT", root.to_str().unwrap()),
                ("AWS_BATCH_JOB_ATTEMPT", attempt),
                ("MLFLOW_TRACKING_URI", &url),
            ];
            let outcome = world.run(&extra, &[&python, &script, option]).await;
            codes.push(outcome.code);
            if outcome.code == Some(0) {
                break;
            }
        }
        assert_eq!((codes[0], codes[1], codes.last()), (Some(9), expected_code, Some(&Some(0))), "{option}");
        assert_eq!(runs(&python, &url).await, expected, "{option}");
    }
}
