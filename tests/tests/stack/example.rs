//! Runs the tests of the example: its training resumes bit for bit wherever it is killed.

use std::path::Path;
use std::process::Command;

use spotsweep_tests::local::{Binaries, Stack};

#[tokio::test]
async fn training_resumes_bit_for_bit() {
    // Makes the Python environment, if no test has made it before.
    Stack::start("example").await.stop().await;
    let python = Binaries::build().target().join("local/venv/bin/python");
    let tested = Command::new(python)
        .args(["-m", "unittest", "test_train.py"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits"))
        .status()
        .unwrap();
    assert!(tested.success(), "{tested}");
}
