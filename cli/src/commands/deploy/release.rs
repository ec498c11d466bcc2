//! The templates and programs of a release, and the bucket from which CloudFormation takes them.

use std::fs;
use std::path::{Path, PathBuf};

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketLocationConstraint, BucketNamespace, CreateBucketConfiguration};
use sha2::{Digest as _, Sha256};
use spotsweep_local_stack::installation::cache_folder;
use spotsweep_local_stack::package::{located, point_at};
use spotsweep_local_stack::release::{programs, zipped};
use tokio::task::block_in_place;

use crate::out;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::hexadecimal;

/// The template that has all others.
const ROOT: &str = "spotsweep.yaml";
/// The runners: the parameter with the hash, and the processor.
const RUNNERS: [(&str, &str); 2] = [("RunnerX86", "x86_64"), ("RunnerArm", "arm64")];

/// A folder with `infra/`, and with the programs for each processor.
#[derive(Debug)]
pub(super) struct Release {
    folder: PathBuf,
    /// Where archives of programs are unpacked.
    cache: PathBuf,
}

/// The runner for one processor.
#[derive(Debug)]
pub(super) struct Runner {
    /// The parameter that names it.
    pub(super) parameter: &'static str,
    pub(super) sha256: String,
    content: Vec<u8>,
}

impl Release {
    pub(super) fn open(folder: PathBuf) -> Result<Self, Failure> {
        let root = folder.join("infra").join(ROOT);
        if root.is_file() {
            let cache =
                cache_folder().ok_or_else(|| Failure::usage("programs are unpacked below ~/.cache: set HOME"))?;
            Ok(Self { folder, cache })
        } else {
            Err(Failure::usage(format!("{} is no release: it has no infra/{ROOT}", folder.display())))
        }
    }

    /// The template that has all others.
    pub(super) fn root(&self) -> Result<String, Failure> {
        self.template(ROOT)
    }

    /// Uploads the functions for a processor and the templates. Returns the URL of the template that has all others.
    pub(super) async fn upload(&self, to: &Artifacts, architecture: &str) -> Result<String, Failure> {
        let root = self.root()?;
        let mut urls = Vec::new();
        for name in located(&root, "Location") {
            let text = self.with_functions(to, architecture, &self.template(&name)?).await?;
            urls.push(to.url(&to.put(&name, "yaml", text.into_bytes()).await?));
        }
        let mut urls = urls.into_iter();
        let root = point_at(&root, "Location", |_| urls.next().unwrap_or_default());
        let root = self.with_functions(to, architecture, &root).await?;
        Ok(to.url(&to.put(ROOT, "yaml", root.into_bytes()).await?))
    }

    /// Uploads the functions of a template, and names their places in it.
    async fn with_functions(&self, to: &Artifacts, architecture: &str, template: &str) -> Result<String, Failure> {
        let mut places = Vec::new();
        for function in located(template, "CodeUri") {
            let program = programs(&self.folder, architecture, &self.cache)?.join(&function);
            let key = to.put(&function, "zip", block_in_place(|| zipped(&program))?).await?;
            places.push(format!("s3://{}/{key}", to.bucket));
        }
        let mut places = places.into_iter();
        Ok(point_at(template, "CodeUri", |_| places.next().unwrap_or_default()))
    }

    /// The runners that the release has.
    pub(super) fn runners(&self) -> Result<Vec<Runner>, Failure> {
        let mut runners = Vec::new();
        for (parameter, processor) in RUNNERS {
            let path = programs(&self.folder, processor, &self.cache)?.join("spotsweep-runner");
            if path.is_file() {
                let content = fs::read(&path).context(|| format!("cannot read {}", path.display()))?;
                runners.push(Runner { parameter, sha256: hexadecimal(Sha256::digest(&content)), content });
            }
        }
        Ok(runners)
    }

    fn template(&self, name: &str) -> Result<String, Failure> {
        let path = self.folder.join("infra").join(name);
        fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))
    }
}

/// The bucket for functions and templates, which the command makes. An object has its hash in its name, so equal content
/// is uploaded once, and an equal release changes no stack.
#[derive(Debug)]
pub(super) struct Artifacts {
    client: Client,
    account: String,
    bucket: String,
    /// The URL of S3 in this region, or the endpoint in its place.
    endpoint: String,
}

impl Artifacts {
    /// Finds or makes the bucket. Another account cannot have the first name, which is in the account's own namespace. The
    /// other one is used only if the account owns the bucket.
    pub(super) async fn open(config: &SdkConfig) -> Result<Self, Failure> {
        let identity = aws_sdk_sts::Client::new(config).get_caller_identity().send().await;
        let identity = identity.context(|| "cannot find the account (sts:GetCallerIdentity)")?;
        let account = identity.account.ok_or_else(|| Failure::new("sts:GetCallerIdentity names no account"))?;
        let region =
            config.region().ok_or_else(|| Failure::usage("no region: set AWS_REGION, or one in the profile"))?;
        let suffix = if region.as_ref().starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let endpoint = config.endpoint_url().map_or_else(|| format!("https://s3.{region}.{suffix}"), str::to_owned);
        let client = spotsweep_aws::path_style_s3(config);
        let own = |bucket: String| Self {
            client: client.clone(),
            account: account.clone(),
            bucket,
            endpoint: endpoint.clone(),
        };
        let names = [format!("spotsweep-{account}-{region}-an"), format!("spotsweep-artifacts-{account}-{region}")];
        for artifacts in names.clone().map(own) {
            if artifacts.exists().await? {
                return Ok(artifacts);
            }
        }
        let [regional, global] = names.map(own);
        match regional.create(region.as_ref(), true).await {
            Ok(()) => Ok(regional),
            // Not every region has the namespaces of accounts.
            Err(_refused) => global.create(region.as_ref(), false).await.map(|()| global),
        }
    }

    async fn exists(&self) -> Result<bool, Failure> {
        let asked = self.client.head_bucket().bucket(&self.bucket).expected_bucket_owner(&self.account).send().await;
        match asked {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(false),
            Err(error) => Err(error).context(|| format!("cannot look at the bucket {} (s3:ListBucket)", self.bucket)),
        }
    }

    async fn create(&self, region: &str, is_regional: bool) -> Result<(), Failure> {
        let elsewhere = (region != "us-east-1").then(|| {
            CreateBucketConfiguration::builder().location_constraint(BucketLocationConstraint::from(region)).build()
        });
        let request = self.client.create_bucket().bucket(&self.bucket).set_create_bucket_configuration(elsewhere);
        let request = request.set_bucket_namespace(is_regional.then_some(BucketNamespace::AccountRegional));
        let made = request.send().await;
        made.context(|| format!("cannot make the bucket {} (s3:CreateBucket)", self.bucket))?;
        out::note(format_args!("made the bucket {} for functions and templates", self.bucket));
        Ok(())
    }

    /// Uploads content under its name and hash, and returns the key.
    async fn put(&self, name: &str, ending: &str, content: Vec<u8>) -> Result<String, Failure> {
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        let key = format!("{stem}/{}.{ending}", hexadecimal(Sha256::digest(&content)));
        self.put_into(&self.bucket, &key, content).await?;
        Ok(key)
    }

    /// Uploads the runners to the deployment's bucket.
    pub(super) async fn put_runners(&self, bucket: &str, runners: &[Runner]) -> Result<(), Failure> {
        for Runner { sha256, content, .. } in runners {
            self.put_into(bucket, &format!("runner/{sha256}"), content.clone()).await?;
        }
        Ok(())
    }

    /// Uploads content unless it is there.
    async fn put_into(&self, bucket: &str, key: &str, content: Vec<u8>) -> Result<(), Failure> {
        let head = self.client.head_object().bucket(bucket).key(key).expected_bucket_owner(&self.account);
        if head.send().await.is_ok() {
            return Ok(());
        }
        let put = self.client.put_object().bucket(bucket).key(key).expected_bucket_owner(&self.account);
        let done = put.body(ByteStream::from(content)).send().await;
        done.context(|| format!("cannot upload s3://{bucket}/{key} (s3:PutObject)")).map(drop)
    }

    fn url(&self, key: &str) -> String {
        format!("{}/{}/{key}", self.endpoint, self.bucket)
    }
}
