//! What a training finds of its instance's data sets: those of its own plan, read-only, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use spotsweep_protocol::words::hexadecimal;

use crate::scene::Scene;

const CACHE: &str = "/opt/spotsweep-data";
const SETUP: &str = r#"set -e
test "$(id -u)" = 1000
test "$(cat "$SPOTSWEEP_DATA_MINE/a/x.txt")" = content
test "$SPOTSWEEP_DATA_MINE" = /data/mine
touch /data/mine/new 2>/dev/null && exit 3
touch /data/mine/a/x.txt 2>/dev/null && exit 4
ls -a /opt/spotsweep-data 2>/dev/null | grep -q lock && exit 5
cat /opt/spotsweep-data/*/tree/secret 2>/dev/null && exit 6
grep ' /data/mine ' /proc/mounts | grep ro,nosuid,nodev
find / -xdev -name secret -path '*tree*' 2>/dev/null | grep -q . && exit 7
exit 0
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_training_sees_the_data_sets_of_its_plan_alone() {
    let parameters = json!({ "steps": 30, "waits": "14", "linger": 0 });
    let Some(mut scene) = Scene::make(&parameters) else { return };
    let cache = scene.probe("data");
    let of_other = cache.join("0123456789abcdef/tree");
    fs::create_dir_all(&of_other).unwrap();
    fs::write(of_other.join("secret"), "of another sweep").unwrap();
    fs::set_permissions(&of_other, fs::Permissions::from_mode(0o755)).unwrap();
    let listing = json!({ "key": "a/x.txt", "size": 7, "etag": "\"e\"" }).to_string() + "\n";
    let sha256 = hexadecimal(Sha256::digest(&listing));
    scene.services.seen().objects.insert("data/set/a/x.txt".to_owned(), b"content".to_vec());
    scene.services.seen().objects.insert("results/s-1/data/mine.jsonl".to_owned(), listing.into_bytes());
    scene.variables.push(("SPOTSWEEP_DATA", CACHE.to_owned()));
    let set = json!({
        "name": "mine", "bucket": "a-bucket", "prefix": "data/set/", "sha256": sha256, "objects": 1, "bytes": 7,
    });
    scene.services.prepare(json!({ "setup": [SETUP], "data": [set] }));
    for (attempt, what) in [(2, "data set mine: fetched 7 bytes"), (3, "data set mine: 7 bytes are on this instance")] {
        scene.volume.attach();
        let ended = scene.start(attempt, &[(&cache, CACHE)]).outcome().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
        scene.assert_nothing_is_left();
        scene.volume.detach().await.unwrap();
    }
}
