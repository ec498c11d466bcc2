//! Decides which control plane a command uses: the named one, else the local stack's, else that of a running demo.

mod stale;

use aws_config::SdkConfig;

use spotsweep_protocol::failure::Failure;

/// Which control plane to read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Table {
    /// The control plane's table; without it the local stack is used where one is running
    #[arg(long = "table", env = "SPOTSWEEP_TABLE", value_name = "TABLE")]
    pub(crate) name: Option<String>,
}

/// A bucket, a table or a stack, and how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Endpoint and credentials.
    pub(crate) config: SdkConfig,
    /// The same for Batch and CloudWatch Logs, which have an endpoint of their own on the local stack.
    pub(crate) batch: SdkConfig,
    /// Its name.
    pub(crate) name: String,
    /// An endpoint in place of AWS's.
    pub(crate) endpoint: Option<String>,
}

impl Target {
    /// AWS as the environment names it, with the name of a resource there.
    pub(crate) fn of(config: SdkConfig, name: String) -> Self {
        Self { batch: config.clone(), config, name, endpoint: stale::endpoint() }
    }

    /// A description for people.
    pub(crate) fn described(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("{} at {endpoint}", self.name),
            None => {
                let region = self.config.region().map_or("no region", |region| region.as_ref());
                format!("{} in {region}", self.name)
            }
        }
    }

    /// Whether it was a stack on this machine, and nothing listens there any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.endpoint.as_deref().is_some_and(stale::is_left)
    }
}

/// The bucket into which files are dropped.
pub(crate) async fn bucket(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, Wanted::Bucket, "--bucket or SPOTSWEEP_BUCKET").await
}

/// The table to read from.
pub(crate) async fn table(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, Wanted::Table, "--table or SPOTSWEEP_TABLE").await
}

/// The CloudFormation stack of the control plane.
pub(crate) async fn stack(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, Wanted::Stack, "--stack or SPOTSWEEP_STACK").await
}

/// AWS as the environment names it. It fails if the environment is that of a local stack that has ended.
pub(crate) async fn sdk_config() -> Result<SdkConfig, Failure> {
    stale::check()?;
    Ok(spotsweep_aws::sdk_config().await)
}

/// A resource that a command names, or that is the local stack's.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Bucket,
    Table,
    Stack,
}

async fn named_or_local(named: Option<String>, wanted: Wanted, how: &str) -> Result<Target, Failure> {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return Ok(Target::of(sdk_config().await?, name));
    }
    if let Some(target) = local(wanted)? {
        return Ok(target);
    }
    stale::check()?;
    Err(Failure::usage(format!(
        "no deployment is selected and no local stack is running: give {how}, or start one with `spotsweep local up`"
    )))
}

/// Prints which local stack is used if nothing names it, because another person may have started it.
#[cfg(feature = "local")]
pub(crate) fn note_found(stack: &str) {
    if spotsweep_local_stack::installation::Installation::named().is_none() {
        crate::out::note(format_args!("using the local stack that runs here: {stack}"));
    }
}

/// Keeps a demo's stack until the file is closed, but only for some seconds, so that a view shows its end.
#[cfg(feature = "local")]
pub(crate) fn view_of_demo() -> Option<std::fs::File> {
    use spotsweep_local_stack::installation::Installation;
    use spotsweep_local_stack::state::Desk;

    let desk = Desk::of_demo(&Installation::locate().ok()?.local());
    desk.running().ok().flatten()?;
    desk.view()
}

/// State of the local stack, or of a running demo.
#[cfg(feature = "local")]
fn local(wanted: Wanted) -> Result<Option<Target>, Failure> {
    use spotsweep_local_stack::deploy::STACK;
    use spotsweep_local_stack::installation::Installation;
    use spotsweep_local_stack::sdk;
    use spotsweep_local_stack::state::Desk;

    // A command without its source tree, and not of a wheel, has no local stack.
    let Ok(installation) = Installation::locate() else { return Ok(None) };
    Ok(Desk::running_under(&installation.local())?.map(|state| {
        let (config, batch) = (sdk::local(&state.endpoint), sdk::local(&state.emulator));
        let name = match wanted {
            Wanted::Bucket => state.bucket,
            Wanted::Table => state.table,
            Wanted::Stack => STACK.to_owned(),
        };
        let target = Target { config, batch, name, endpoint: Some(state.endpoint) };
        note_found(&target.described());
        target
    }))
}

/// A program without the feature `local` has no local stack.
#[cfg(not(feature = "local"))]
#[expect(clippy::unnecessary_wraps, reason = "as with a local stack")]
fn local(_: Wanted) -> Result<Option<Target>, Failure> {
    Ok(None)
}
