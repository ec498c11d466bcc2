//! EC2's wire: the query protocol. `Action=…` in a form body, XML back.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;

use super::xml::{list, node, text};
use super::{Answer, answer, dropped};
use crate::driver::Core;
use crate::world::ebs::Tags;
use crate::world::{ApiError, Failure, Filter, Selection, Service, World};

mod instances;
mod prices;
mod snapshots;
mod volumes;

type Action = fn(&mut World, &Form) -> Result<String, ApiError>;

const ACTIONS: [(&str, Action); 13] = [
    ("DescribeInstances", instances::describe),
    ("TerminateInstances", instances::terminate),
    ("DescribeAvailabilityZones", instances::describe_zones),
    ("DescribeSpotPriceHistory", prices::describe),
    ("CreateVolume", volumes::create),
    ("DescribeVolumes", volumes::describe),
    ("AttachVolume", volumes::attach),
    ("DetachVolume", volumes::detach),
    ("DeleteVolume", volumes::delete),
    ("CreateSnapshot", snapshots::create),
    ("DescribeSnapshots", snapshots::describe),
    ("DeleteSnapshot", snapshots::delete),
    ("CreateTags", |world, form| {
        let done = world.create_tags(&form.list("ResourceId"), &form.tags("Tag"));
        done.map(|()| text("return", "true"))
    }),
];

/// Parameters that no action here knows.
const NOT_EMULATED: [&str; 8] = [
    "DryRun",
    "AvailabilityZoneId",
    "Iops",
    "KmsKeyId",
    "MultiAttachEnabled",
    "OutpostArn",
    "RestorableBy.1",
    "Throughput",
];

/// The decoded parameters.
struct Form(BTreeMap<String, String>);

impl Form {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    fn optional(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |given: &str| {
            let message = format!("Value ({given}) for parameter {name} is invalid.");
            given.parse().map_err(|_| ApiError::ec2("InvalidParameterValue", message))
        };
        self.get(name).map(parse).transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self.number(name)?.unwrap_or(false))
    }

    /// `Name.1`, `Name.2`, …: as far as they go.
    fn list(&self, name: &str) -> Vec<String> {
        (1..).map_while(|n| self.0.get(&format!("{name}.{n}")).cloned()).collect()
    }

    fn filters(&self) -> Vec<Filter> {
        (1..)
            .map_while(|n| {
                let name = self.get(&format!("Filter.{n}.Name"))?.to_owned();
                Some(Filter { name, values: self.list(&format!("Filter.{n}.Value")) })
            })
            .collect()
    }

    /// Ids under `ids`, filters, and the page.
    fn selection(&self, ids: &str) -> Result<Selection, ApiError> {
        Ok(Selection {
            ids: self.list(ids),
            filters: self.filters(),
            max_results: self.number("MaxResults")?,
            next_token: self.optional("NextToken"),
        })
    }

    /// `<prefix>.1.Key`, `<prefix>.1.Value`, …
    fn tags(&self, prefix: &str) -> Tags {
        let pair = |n| Some((self.optional(&format!("{prefix}.{n}.Key"))?, self.text(&format!("{prefix}.{n}.Value"))));
        Tags((1..).map_while(pair).collect())
    }

    /// The tags that a new resource of this type is to have.
    fn tags_on_create(&self, resource_type: &str) -> Result<Tags, ApiError> {
        let mut tags = Tags::default();
        let given = |n| self.get(&format!("TagSpecification.{n}.ResourceType")).map(|given| (n, given));
        for (n, given) in (1..).map_while(given) {
            if given != resource_type {
                let message = format!("'{given}' is not a valid taggable resource type for this operation.");
                return Err(ApiError::ec2("InvalidParameterValue", message));
            }
            tags.0.extend(self.tags(&format!("TagSpecification.{n}.Tag")).0);
        }
        Ok(tags)
    }

    /// What AWS has and this emulator has not is said aloud instead of ignored.
    fn check_emulated(&self) -> Result<(), ApiError> {
        let no = |name: &&&str| self.get(name).is_some_and(|given| given != "false");
        match NOT_EMULATED.iter().find(no) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{name} is not emulated by spotsweep-emulator; leave it out.");
                Err(ApiError::ec2("UnsupportedOperation", message))
            }
        }
    }
}

pub(super) fn call(core: &Arc<Core>, body: &Bytes) -> Answer {
    let form = Form(form_urlencoded::parse(body).into_owned().collect());
    let request_id = core.request_id();
    let Some(action) = form.get("Action") else {
        let missing = ApiError::ec2("MissingAction", "The request is missing an Action parameter");
        return Ok(error(&missing, &request_id));
    };
    let Some((name, effect)) = ACTIONS.iter().find(|(name, _)| *name == action) else {
        let message = format!("The action {action} is not valid for this web service.");
        return Ok(error(&ApiError::ec2("InvalidAction", message), &request_id));
    };
    let outcome = core.with(|world, now| {
        world.call(Service::Ec2, name, now, |world| {
            form.check_emulated()?;
            effect(world, &form)
        })
    });
    Ok(match outcome {
        Ok(inner) => answer(200, "text/xml;charset=UTF-8", document(name, &request_id, &inner)),
        Err(Failure::Api(refusal)) => error(&refusal, &request_id),
        Err(Failure::Dropped) => dropped(),
    })
}

fn document(action: &str, request_id: &str, inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">{}{inner}</{action}Response>",
        text("requestId", request_id),
    )
}

fn error(error: &ApiError, request_id: &str) -> Response {
    let detail = node("Error", [text("Code", error.code), text("Message", &error.message)]);
    let body = node("Response", [node("Errors", [detail]), text("RequestID", request_id)]);
    answer(error.status, "text/xml;charset=UTF-8", body)
}

fn tag_set(tags: impl Iterator<Item = (impl AsRef<str>, impl AsRef<str>)>) -> String {
    list("tagSet", tags.map(|(key, value)| text("key", key) + &text("value", value)))
}

fn next_token(next: Option<String>) -> String {
    next.map(|next| text("nextToken", next)).unwrap_or_default()
}
