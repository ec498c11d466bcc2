//! What a setup finds in its container: the cache of its sweep alone, and shared memory of the wanted size.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::json;

use crate::scene::Scene;

const CACHE: &str = "/opt/spotsweep-cache";
const SETUP: &str = r#"set -e
test "$(df -k /dev/shm | awk 'END { print $2 }')" = 98304
test "$(id -u)" = 1000
ls -a /opt/spotsweep-cache | grep -q other && exit 4
mkdir -p "$UV_CACHE_DIR" "$PIP_CACHE_DIR"
echo ran >> "$UV_CACHE_DIR/runs"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_setup_has_the_cache_of_its_sweep_and_shared_memory() {
    let parameters = json!({ "steps": 30, "waits": "14", "linger": 0 });
    let Some(mut scene) = Scene::make(&parameters) else { return };
    let cache = scene.probe("cache");
    let of_other = cache.join("other-0123456789ab");
    fs::create_dir_all(&of_other).unwrap();
    fs::set_permissions(&of_other, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&of_other, Some(1000), Some(1000)).unwrap();
    scene.variables.push(("SPOTSWEEP_CACHE", CACHE.to_owned()));
    scene.services.prepare(json!({ "setup": [SETUP], "shared_memory_mib": 96 }));
    for attempt in [2, 3] {
        scene.volume.attach();
        let ended = scene.start(attempt, &[(&cache, CACHE)]).outcome().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        scene.assert_nothing_is_left();
        scene.volume.detach().await.unwrap();
    }
    let runs = fs::read_to_string(cache.join("s-1/uv/runs")).unwrap();
    assert_eq!(runs, "ran\nran\n", "the next trial on the instance finds it");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o7777, 0o711);
}
