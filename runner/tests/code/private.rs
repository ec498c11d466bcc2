//! Private repositories: one that a token opens, and one that a key opens.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::{commit, git};
use crate::world::{Answer, World, preparing};

const TOKEN: &str = "ghp_not-a-real/token+1";
/// `x-access-token:TOKEN` in base64.
const BASIC: &str = "Basic eC1hY2Nlc3MtdG9rZW46Z2hwX25vdC1hLXJlYWwvdG9rZW4rMQ==";
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IGEgcmVhbCBrZXk\n-----END OPENSSH PRIVATE KEY-----";

fn private(request: &str, nth: usize, git: &str) -> Answer {
    let code = json!({"private": {"git": git, "ref": "main"}, "token": "/spotsweep/b/GIT"});
    preparing(json!({ "code": code }), request, nth)
}

async fn world(invoke: fn(&str, usize) -> Answer, secret: &str) -> (World, PathBuf) {
    let world = World::with_volume(invoke).await;
    world.keep([("/spotsweep/b/GIT".to_owned(), secret.to_owned())].into());
    let repository = world.path("repository");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    commit(&repository, r#"echo "trained with ${GIT-no token} $(env | grep -c -i -E 'git_(token|ssh)')""#);
    git(&repository, &["update-server-info"]);
    (world, repository)
}

/// A server of plain files, to callers with the token
/// (<https://git-scm.com/book/en/v2/Git-Internals-Transfer-Protocols>, the dumb protocol).
async fn serve(repository: PathBuf) -> String {
    async fn answer(State(folder): State<Arc<PathBuf>>, request: Request) -> Response<axum::body::Body> {
        let reply = |status, body: Vec<u8>| {
            let response = Response::builder().status(status).header("www-authenticate", "Basic realm=\"git\"");
            response.body(body.into()).unwrap()
        };
        if request.headers().get("authorization").is_none_or(|given| given != BASIC) {
            return reply(StatusCode::UNAUTHORIZED, Vec::new());
        }
        match fs::read(folder.join(request.uri().path().trim_start_matches("/me/train.git/"))) {
            Ok(bytes) => reply(StatusCode::OK, bytes),
            Err(_) => reply(StatusCode::NOT_FOUND, Vec::new()),
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/me/train.git", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::new(repository.join(".git")));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_a_repository_and_the_training_has_none() {
    static URL: OnceLock<String> = OnceLock::new();
    fn grants(request: &str, nth: usize) -> Answer {
        private(request, nth, URL.get().unwrap())
    }
    let (world, repository) = world(grants, TOKEN).await;
    URL.set(serve(repository).await).unwrap();
    let outcome = world.run(&[], &["sh", "train.sh"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "trained with no token 0\n"), "{}", outcome.stderr);

    world.keep([("/spotsweep/b/GIT".to_owned(), "a-wrong-token".to_owned())].into());
    fs::remove_dir_all(world.path("volume/.spotsweep")).unwrap();
    let outcome = world.run(&[], &["sh", "train.sh"]).await;
    assert_eq!(outcome.code, Some(76), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("git fetch failed") && !outcome.stderr.contains("wrong-token"),
        "{}",
        outcome.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_a_repository_and_is_gone_afterwards() {
    fn grants(request: &str, nth: usize) -> Answer {
        private(request, nth, "git@git.example:me/train.git")
    }
    let (world, repository) = world(grants, &format!("{KEY}\n")).await;
    let bin = world.path("bin");
    fs::create_dir_all(&bin).unwrap();
    // In the place of ssh, this serves the repository to a caller that has the key.
    let ssh = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -i ]; do shift; done\n\
         test \"$(stat -c %a \"$2\")\" = 600 && grep -q bm90IGEgcmVhbCBrZXk \"$2\" || exit 9\n\
         echo \"$2\" > {key}\nexec git upload-pack {repository}\n",
        key = world.path("key-file").display(),
        repository = repository.display()
    );
    fs::write(bin.join("ssh"), ssh).unwrap();
    fs::set_permissions(bin.join("ssh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let outcome = world.run(&[("PATH", &path)], &["sh", "train.sh"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "trained with no token 0\n"), "{}", outcome.stderr);
    let key = fs::read_to_string(world.path("key-file")).unwrap();
    assert!(!key.trim().is_empty() && !PathBuf::from(key.trim()).exists(), "{key}");
}
