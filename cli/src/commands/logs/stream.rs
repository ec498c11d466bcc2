//! Reads a trial's output from a stream of CloudWatch Logs, or from the object that exists after the trial's end.

use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::operation::get_log_events::GetLogEventsOutput;

use crate::out;
use crate::sweeps::Found;
use spotsweep_protocol::failure::{Context, Failure};

/// Batch's log group for job definitions that name none
/// (<https://docs.aws.amazon.com/batch/latest/userguide/using_awslogs.html>).
const DEFAULT_GROUP: &str = "/aws/batch/job";
/// Most events in one answer
/// (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html>).
const MOST_EVENTS: usize = 10_000;
/// Name of a trial's log among its outputs.
const END: &str = "train.log";

/// Result of a look at a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// There were new lines.
    Lines,
    /// There was nothing new.
    Nothing,
    /// CloudWatch does not have the stream yet, or not any more.
    Missing,
    /// The reader of the command's output has gone.
    Unread,
}

/// One attempt's log, and how far it has been printed.
#[derive(Debug)]
pub(super) struct Stream {
    client: Client,
    group: String,
    name: String,
    token: Option<String>,
}

impl Stream {
    pub(super) fn new(client: Client, group: String, name: String) -> Self {
        Self { client, group, name, token: None }
    }

    /// Prints what has not been printed yet.
    pub(super) async fn print(&mut self) -> Result<Read, Failure> {
        let mut read = Read::Nothing;
        loop {
            let Some(page) = self.page().await? else { return Ok(Read::Missing) };
            let messages = page.events().iter().map(|event| event.message().unwrap_or_default());
            if !page.events().is_empty() {
                read = Read::Lines;
                let mut messages = messages;
                if !out::training(|to| messages.try_for_each(|message| writeln!(to, "{message}")))? {
                    return Ok(Read::Unread);
                }
            }
            // At the end CloudWatch answers with the token of the request.
            let is_end = page.next_forward_token == self.token;
            self.token = page.next_forward_token;
            if is_end || self.token.is_none() {
                return Ok(read);
            }
        }
    }

    /// Prints the last lines. [`Self::print`] goes on after them.
    pub(super) async fn print_last(&mut self, lines: usize) -> Result<Read, Failure> {
        let (mut pages, mut missing, mut token) = (Vec::new(), lines, None);
        loop {
            let limit = i32::try_from(missing.min(MOST_EVENTS)).unwrap_or(i32::MAX);
            let Some(page) = self.page_back(limit, token.clone()).await? else { return Ok(Read::Missing) };
            if pages.is_empty() {
                self.token = page.next_forward_token;
            }
            let events = page.events.unwrap_or_default();
            missing = missing.saturating_sub(events.len());
            pages.push(events);
            // At the beginning CloudWatch answers with the token of the request.
            let is_all = page.next_backward_token == token || page.next_backward_token.is_none();
            token = page.next_backward_token;
            if missing == 0 || is_all {
                break;
            }
        }
        let messages = pages.iter().rev().flatten().map(|event| event.message().unwrap_or_default());
        let mut messages = messages.peekable();
        let read = if messages.peek().is_some() { Read::Lines } else { Read::Nothing };
        let is_read = out::training(|to| messages.try_for_each(|message| writeln!(to, "{message}")))?;
        Ok(if is_read { read } else { Read::Unread })
    }

    async fn page(&self) -> Result<Option<GetLogEventsOutput>, Failure> {
        self.get(true, None, self.token.clone()).await
    }

    /// The newest events, or those before a token.
    async fn page_back(&self, limit: i32, token: Option<String>) -> Result<Option<GetLogEventsOutput>, Failure> {
        self.get(false, Some(limit), token).await
    }

    async fn get(
        &self,
        from_head: bool,
        limit: Option<i32>,
        token: Option<String>,
    ) -> Result<Option<GetLogEventsOutput>, Failure> {
        let Self { group, name, .. } = self;
        let get = self.client.get_log_events().log_group_name(group).log_stream_name(name).start_from_head(from_head);
        match get.set_limit(limit).set_next_token(token).send().await {
            Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
                Ok(None)
            }
            page => page.map(Some).context(|| format!("cannot read the stream {name} of log group {group}")),
        }
    }

    pub(super) fn missing(&self) -> Failure {
        let Self { group, name, .. } = self;
        Failure::new(format!(
            "log group {group} has no stream {name}: the container printed nothing, or the group's retention is over; \
             is the group another one, name it with --group"
        ))
    }
}

/// The log group of the sweep's job definition.
pub(super) async fn group(found: &Found) -> Result<String, Failure> {
    let definition = &found.plan()?.definition;
    let client = aws_sdk_batch::Client::new(&found.target.batch);
    let cannot_look = || format!("cannot look the log group up, in job definition {definition}; --group names it");
    let described = client.describe_job_definitions().job_definitions(definition).send().await.context(cannot_look)?;
    let described = described.job_definitions().first();
    let configuration = described
        .and_then(|definition| definition.container_properties())
        .and_then(|container| container.log_configuration());
    let Some(configuration) = configuration else { return Ok(DEFAULT_GROUP.to_owned()) };
    let driver = configuration.log_driver();
    if driver.is_some_and(|driver| *driver != aws_sdk_batch::types::LogDriver::Awslogs) {
        let driver = driver.map_or("", |driver| driver.as_str());
        return Err(Failure::new(format!(
            "job definition {definition} sends its output to {driver}, not to CloudWatch Logs: look there, or at {END} \
             beside the trial's outputs once it has ended"
        )));
    }
    let group = configuration.options().and_then(|options| options.get("awslogs-group"));
    Ok(group.cloned().unwrap_or_else(|| DEFAULT_GROUP.to_owned()))
}

/// Prints the end of a trial's log from the object among its outputs, or its last lines. Returns false if there is no
/// such object.
pub(super) async fn print_end(found: &Found, index: u32, tail: Option<usize>) -> Result<bool, Failure> {
    let key = format!("{}{END}", found.sweep.id.trial_prefix(index));
    let Some(log) = found.read(&key).await? else { return Ok(false) };
    out::note(format_args!("CloudWatch has no log of it; this is the end of it, from s3://{}/{key}", found.bucket()));
    out::training(|to| to.write_all(last_lines(&log, tail)))?;
    Ok(true)
}

/// The last so many lines of a text, or all of it if no number is given.
fn last_lines(text: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return text };
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    let breaks = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let begin = breaks.map(|(place, _)| place + 1).nth(lines.saturating_sub(1)).unwrap_or(0);
    &text[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_its_last_lines() {
        let text = b"one\ntwo\nthree\n";
        for (lines, expected) in
            [(None, &text[..]), (Some(1), &b"three\n"[..]), (Some(2), &b"two\nthree\n"[..]), (Some(9), &text[..])]
        {
            assert_eq!(last_lines(text, lines), expected);
        }
        assert_eq!(last_lines(b"one\ntwo", Some(1)), b"two");
        assert_eq!(last_lines(b"", Some(1)), b"");
    }
}
