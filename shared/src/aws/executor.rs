//! Commands to SDK calls: the match over commands, split by service.

use aws_config::SdkConfig;

use super::{batch, ebs, ecs, events, gather, prices, s3};
use crate::command::Command;
use crate::event::Event;
use crate::handle::{ExecuteError, Executor};
use crate::report::Report;

pub(super) type Outcome = Result<Vec<Event>, Box<dyn std::error::Error + Send + Sync>>;

/// The clients.
#[derive(Debug, Clone)]
pub struct AwsExecutor {
    s3: aws_sdk_s3::Client,
    batch: aws_sdk_batch::Client,
    events: aws_sdk_eventbridge::Client,
    ec2: aws_sdk_ec2::Client,
    ecs: aws_sdk_ecs::Client,
    sns: aws_sdk_sns::Client,
    prices: prices::Clients,
    page: Option<Page>,
}

/// Draws a report as a file of HTML.
pub type Page = fn(&Report) -> String;

impl AwsExecutor {
    /// Clients that share the configuration's HTTP client.
    pub fn new(config: &SdkConfig) -> Self {
        let ec2 = ebs::client(config);
        Self {
            s3: aws_sdk_s3::Client::new(config),
            batch: aws_sdk_batch::Client::new(config),
            events: aws_sdk_eventbridge::Client::new(config),
            prices: prices::Clients::new(config, ec2.clone()),
            ec2,
            ecs: aws_sdk_ecs::Client::new(config),
            sns: aws_sdk_sns::Client::new(config),
            page: None,
        }
    }

    /// Publishes reports drawn by `page`. Only who gives it one holds the chart library in its binary.
    #[must_use]
    pub fn with_page(self, page: Page) -> Self {
        Self { page: Some(page), ..self }
    }

    async fn run(&self, command: Command) -> Outcome {
        match command {
            Command::ReadUpload { sweep, upload } => s3::read_upload(&self.s3, sweep, &upload).await,
            Command::StoreTrials { sweep, bucket, prepared } => {
                s3::store_trials(&self.s3, sweep, &bucket, prepared).await
            }
            Command::WritePlan { sweep, upload, plan } => s3::write_plan(&self.s3, sweep, &upload, &plan).await,
            Command::WriteRejection { sweep, upload, problems } => {
                s3::write_rejection(&self.s3, sweep, &upload, &problems).await
            }
            Command::Gather(wanted) => gather::gather(&self.s3, &self.prices, wanted).await,
            Command::PublishResults { sweep, bucket, results } => {
                let page = self.page.ok_or("this function draws no reports, sweep-settled does")?;
                s3::publish_results(&self.s3, sweep, &bucket, *results, page).await
            }
            Command::FindLine { request, bucket } => s3::find_line(&self.s3, request, bucket).await,
            Command::CheckTarget { sweep, prepared } => {
                batch::check_target(&self.batch, &self.ec2, sweep, prepared).await
            }
            Command::SubmitPart(submission) => batch::submit(&self.batch, submission).await,
            Command::FindPart { name, queue } => batch::find(&self.batch, name, &queue).await,
            Command::TerminateJobs { sweep, jobs, reason } => {
                batch::terminate(&self.batch, sweep, &jobs, &reason).await
            }
            Command::CancelWaiting { sweep, jobs, reason } => batch::cancel(&self.batch, sweep, &jobs, &reason).await,
            Command::DescribeJobs(jobs) => batch::describe(&self.batch, jobs).await,
            Command::Workspace(of, call) => ebs::call(&self.ec2, of, call).await,
            Command::LocateAttempt { trial, attempt, container_instance } => {
                ecs::locate(&self.ecs, trial, attempt, &container_instance).await
            }
            Command::Announce(announcement) => events::announce(&self.events, &self.sns, announcement).await,
        }
    }
}

impl Executor for AwsExecutor {
    async fn execute(&self, command: Command) -> Result<Vec<Event>, ExecuteError> {
        let name = command.name();
        self.run(command).await.map_err(|source| ExecuteError { command: name, source })
    }
}
