//! Deploys `infra/control-plane.yaml` unchanged, and reads each resource back to check that it exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aws_config::SdkConfig;
use aws_sdk_s3::primitives::ByteStream;
use spotsweep_protocol::functions::CLAIM;

use crate::installation::{ARCHITECTURE, Installation, TEMPLATE};
use crate::job_role;
use crate::package::{Bootstraps, located, point_at};
use crate::run_folder::RunFolder;
use crate::template::{Source, Template, describe};
use spotsweep_protocol::failure::{Context, Failure};

/// The local control plane's bucket.
pub const BUCKET: &str = "spotsweep-local";
/// The bucket of the functions' code and of the template.
const ARTIFACTS: &str = "spotsweep-local-artifacts";
/// The template's key in that bucket.
const TEMPLATE_KEY: &str = "control-plane.yaml";
/// A bucket besides its own from which its sweeps may read data. Whoever has data there makes it.
pub const DATA_BUCKET: &str = "spotsweep-local-data";
/// The secrets besides its own that its sweeps may read: a pattern of paths in Parameter Store, and one of names in Secrets
/// Manager.
pub const SECRETS: [&str; 2] = ["/team/*", "team/*"];
/// Name of the CloudFormation stack.
pub const STACK: &str = "spotsweep-local";

/// What is deployed: the template, and the zips that are uploaded before it.
#[derive(Debug)]
pub struct Package {
    template: String,
    functions: Vec<String>,
    zips: Vec<PathBuf>,
}

impl Package {
    /// Reads the template, and zips the functions that it names.
    ///
    /// # Errors
    /// The template or a binary cannot be read, or a zip cannot be written.
    pub async fn make(installation: &Installation, binaries: &Path, run: &RunFolder) -> Result<Self, Failure> {
        let (installation, binaries, folder) = (installation.clone(), binaries.to_owned(), run.subfolder("functions")?);
        let make = move || {
            let path = installation.root.join(TEMPLATE);
            let text = std::fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
            let functions = located(&text, "CodeUri");
            let template = point_at(&text, "CodeUri", |name| format!("s3://{ARTIFACTS}/{name}.zip"));
            let zips = Bootstraps { binaries: &binaries, folder: &folder }.zip(&functions)?;
            Ok(Self { template, functions, zips })
        };
        tokio::task::spawn_blocking(make).await.context(|| "zipping the functions was cut off")?
    }

    /// Uploads the zips and the template, creates the stack and the jobs' role, and checks what exists then. Returns the
    /// table's name. `secrets` are patterns of secrets that sweeps may read, besides [`SECRETS`].
    ///
    /// # Errors
    /// A request fails, or a resource is missing.
    pub async fn deploy(
        &self,
        config: &SdkConfig,
        queue: &str,
        definition: &str,
        secrets: &[String],
    ) -> Result<String, Failure> {
        self.upload(&spotsweep_aws::path_style_s3(config)).await?;
        let client = aws_sdk_cloudformation::Client::new(config);
        self.create_stack(&client, queue, definition, secrets).await?;
        let outputs = outputs(&client, STACK).await?;
        job_role::create(&client, output(&outputs, "RunnerPolicy")?).await?;
        let table = output(&outputs, "Table")?;
        self.read_back(config, table).await?;
        Ok(table.to_owned())
    }

    async fn upload(&self, s3: &aws_sdk_s3::Client) -> Result<(), Failure> {
        s3.create_bucket()
            .bucket(ARTIFACTS)
            .send()
            .await
            .context(|| "cannot create the bucket for the functions' code")?;
        for (name, zip) in self.functions.iter().zip(&self.zips) {
            let body = ByteStream::from_path(zip).await.context(|| format!("cannot read {}", zip.display()))?;
            let put = s3.put_object().bucket(ARTIFACTS).key(format!("{name}.zip")).body(body).send().await;
            put.context(|| format!("cannot upload the code of {name}"))?;
        }
        let body = self.template.clone().into_bytes().into();
        let put = s3.put_object().bucket(ARTIFACTS).key(TEMPLATE_KEY).body(body).send().await;
        put.context(|| "cannot upload the template")?;
        Ok(())
    }

    async fn create_stack(
        &self,
        client: &aws_sdk_cloudformation::Client,
        queue: &str,
        definition: &str,
        secrets: &[String],
    ) -> Result<(), Failure> {
        let secrets: Vec<&str> = SECRETS.into_iter().chain(secrets.iter().map(String::as_str)).collect();
        let secrets = secrets.join(",");
        let parameters = [
            ("NamePrefix", ""),
            ("BucketName", BUCKET),
            ("JobQueue", queue),
            ("JobDefinition", definition),
            ("Architecture", ARCHITECTURE),
            ("ReconcileMinutes", "1"),
            ("DataBuckets", DATA_BUCKET),
            ("AllowedSecrets", &secrets),
            // In the emulator a volume is a folder or a sparse file.
            ("WorkspaceGib", "1"),
            // The emulator moves a workspace in a second.
            ("PollMs", "150"),
        ];
        let url = format!("https://s3.amazonaws.com/{ARTIFACTS}/{TEMPLATE_KEY}");
        let template = Template { stack: STACK, source: Source::Url(&url), parameters: &parameters };
        template.deploy(client).await
    }

    /// Checks each resource that the control plane needs with the API that uses it: ministack reports a stack as
    /// complete even if it does not know a type of resource and has left it out.
    async fn read_back(&self, config: &SdkConfig, table: &str) -> Result<(), Failure> {
        let (functions, rules) = (aws_sdk_lambda::Client::new(config), aws_sdk_eventbridge::Client::new(config));
        for name in &self.functions {
            let missing = || format!("the control plane is deployed, but its function {name} is not there");
            functions.get_function().function_name(name).send().await.context(missing)?;
            if name == CLAIM {
                continue;
            }
            let missing = || format!("the control plane is deployed, but its rule {name} is not there");
            let targets = rules.list_targets_by_rule().rule(name).send().await.context(missing)?;
            if !targets.targets().iter().any(|target| target.arn().ends_with(&format!(":function:{name}"))) {
                return Err(Failure::new(format!("the rule {name} is deployed, but does not call its function")));
            }
        }
        let s3 = spotsweep_aws::path_style_s3(config);
        s3.head_bucket().bucket(BUCKET).send().await.context(|| format!("the bucket {BUCKET} is not there"))?;
        let tables = aws_sdk_dynamodb::Client::new(config);
        tables.describe_table().table_name(table).send().await.context(|| format!("the table {table} is not there"))?;
        Ok(())
    }
}

async fn outputs(client: &aws_sdk_cloudformation::Client, stack: &str) -> Result<BTreeMap<String, String>, Failure> {
    let outputs = describe(client, stack).await?.outputs.unwrap_or_default();
    Ok(outputs.into_iter().filter_map(|output| Some((output.output_key?, output.output_value?))).collect())
}

fn output<'a>(outputs: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, Failure> {
    let found = outputs.get(name).map(String::as_str);
    found.ok_or_else(|| Failure::new(format!("the control plane names no {name} in its outputs")))
}
