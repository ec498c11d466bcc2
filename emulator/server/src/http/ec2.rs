//! The wire protocol of EC2, the query protocol: `Action=…` in a form body, and XML as the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::Response;

use super::xml::{list, node, text};
use super::{Answer, REQUEST_ID, answer, dropped};
use crate::driver::Core;
use spotsweep_world::ebs::Tags;
use spotsweep_world::{ApiError, Failure, Filter, Selection, Service, World};

mod instances;
mod offerings;
mod prices;
mod snapshots;
mod volumes;

const XML: &str = "text/xml;charset=UTF-8";

type Effect = fn(&mut World, &Form) -> Result<String, ApiError>;

/// An action: its name, its emulated parameters (`N` stands for a number), and its effect.
type Action = (&'static str, &'static [&'static str], Effect);

/// The parameters of the Describe actions that select resources.
const SELECTION: [&str; 4] = ["Filter.N.Name", "Filter.N.Value.N", "MaxResults", "NextToken"];

/// The parameters of the actions that make a tagged resource.
const TAG_SPECIFICATION: [&str; 3] =
    ["TagSpecification.N.ResourceType", "TagSpecification.N.Tag.N.Key", "TagSpecification.N.Tag.N.Value"];

const ACTIONS: [Action; 17] = [
    ("DescribeInstances", &["InstanceId.N"], instances::describe),
    ("DescribeInstanceStatus", &["IncludeAllInstances", "InstanceId.N"], instances::describe_status),
    ("TerminateInstances", &["InstanceId.N"], instances::terminate),
    ("DescribeAvailabilityZones", &["ZoneName.N"], instances::describe_zones),
    ("DescribeInstanceTypeOfferings", &["LocationType"], offerings::describe),
    ("DescribeInstanceTypes", &[], offerings::describe_types),
    ("DescribeSubnets", &["SubnetId.N"], offerings::describe_subnets),
    (
        "DescribeSpotPriceHistory",
        &["AvailabilityZone", "EndTime", "InstanceType.N", "ProductDescription.N", "StartTime"],
        prices::describe,
    ),
    (
        "CreateVolume",
        &[
            "AvailabilityZone",
            "ClientToken",
            "Encrypted",
            "Size",
            "SnapshotId",
            "VolumeInitializationRate",
            "VolumeType",
        ],
        volumes::create,
    ),
    ("DescribeVolumes", &["VolumeId.N"], volumes::describe),
    ("AttachVolume", &["Device", "InstanceId", "VolumeId"], volumes::attach),
    ("DetachVolume", &["Device", "Force", "InstanceId", "VolumeId"], volumes::detach),
    ("DeleteVolume", &["VolumeId"], volumes::delete),
    ("CreateSnapshot", &["Description", "VolumeId"], snapshots::create),
    ("DescribeSnapshots", &["Owner.N", "SnapshotId.N"], snapshots::describe),
    ("DeleteSnapshot", &["SnapshotId"], snapshots::delete),
    ("CreateTags", &["ResourceId.N", "Tag.N.Key", "Tag.N.Value"], |world, form| {
        let done = world.create_tags(&form.list("ResourceId"), &form.tags("Tag")?);
        done.map(|()| text("return", "true"))
    }),
];

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

    fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |given: &str| {
            let message = format!("Value ({given}) for parameter {name} is invalid.");
            given.parse().map_err(|_| ApiError::ec2("InvalidParameterValue", message))
        };
        self.get(name).map(parse).transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self.number(name)?.unwrap_or(false))
    }

    /// Returns the numbers `n` of the parameters `<name>.n` and `<name>.n.…`, in order. EC2 accepts lists with gaps.
    fn numbers(&self, name: &str) -> BTreeSet<u32> {
        let number = |key: &String| key.strip_prefix(name)?.strip_prefix('.')?.split('.').next()?.parse().ok();
        self.0.keys().filter_map(number).collect()
    }

    /// Returns the values of `<name>.1`, `<name>.2`, …
    fn list(&self, name: &str) -> Vec<String> {
        self.numbers(name).into_iter().filter_map(|n| self.optional(&format!("{name}.{n}"))).collect()
    }

    fn filters(&self) -> Result<Vec<Filter>, ApiError> {
        let filter = |n| {
            // EC2 prints a filter without a name in this way.
            let name = self.get(&format!("Filter.{n}.Name")).unwrap_or("null").to_owned();
            let values = self.list(&format!("Filter.{n}.Value"));
            if name == "null" || values.is_empty() {
                return Err(ApiError::ec2("InvalidParameterValue", format!("The filter '{name}' is invalid")));
            }
            Ok(Filter { name, values })
        };
        self.numbers("Filter").into_iter().map(filter).collect()
    }

    /// Returns the ids under `ids`, the filters, and the page.
    fn selection(&self, ids: &str) -> Result<Selection, ApiError> {
        Ok(Selection {
            ids: self.list(ids),
            filters: self.filters()?,
            max_results: self.number("MaxResults")?,
            next_token: self.optional("NextToken"),
        })
    }

    /// Returns the tags in `<prefix>.1.Key`, `<prefix>.1.Value`, …
    fn tags(&self, prefix: &str) -> Result<Tags, ApiError> {
        let mut tags = Tags::default();
        for n in self.numbers(prefix) {
            let key = self.text(&format!("{prefix}.{n}.Key"));
            if tags.0.insert(key.clone(), self.text(&format!("{prefix}.{n}.Value"))).is_some() {
                let message = format!("Duplicate tag key '{key}' specified.");
                return Err(ApiError::ec2("InvalidParameterValue", message));
            }
        }
        Ok(tags)
    }

    /// Returns the tags for a new resource of this type.
    fn tags_on_create(&self, resource_type: &str) -> Result<Tags, ApiError> {
        let mut tags = Tags::default();
        for n in self.numbers("TagSpecification") {
            let given = self.text(&format!("TagSpecification.{n}.ResourceType"));
            if given != resource_type {
                let message = format!("'{given}' is not a valid taggable resource type for this operation.");
                return Err(ApiError::ec2("InvalidParameterValue", message));
            }
            tags.0.extend(self.tags(&format!("TagSpecification.{n}.Tag"))?.0);
        }
        Ok(tags)
    }

    /// Refuses parameters that the action does not have, or has only on AWS.
    fn check_emulated(&self, action: &str, own: &[&str]) -> Result<(), ApiError> {
        let shared: &[&str] = match action {
            "DescribeInstances" | "DescribeVolumes" | "DescribeSnapshots" => &SELECTION,
            "DescribeAvailabilityZones"
            | "DescribeInstanceTypeOfferings"
            | "DescribeInstanceTypes"
            | "DescribeSubnets" => &SELECTION[..2],
            "DescribeSpotPriceHistory" => &SELECTION[2..],
            "CreateVolume" | "CreateSnapshot" => &TAG_SPECIFICATION,
            _untagged => &[],
        };
        let known = |name: &str| {
            let pattern = numbers_as_n(name);
            ["Action", "Version"].contains(&name) || own.iter().chain(shared).any(|one| *one == pattern)
        };
        match self.0.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{name} of {action} is not emulated by spotsweep-emulator; leave it out.");
                Err(ApiError::ec2("UnsupportedOperation", message))
            }
        }
    }
}

/// Returns `Filter.2.Value.1` as `Filter.N.Value.N`.
fn numbers_as_n(name: &str) -> String {
    let part = |part| if u32::from_str(part).is_ok() { "N" } else { part };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

pub(super) fn call(core: &Arc<Core>, body: &Bytes) -> Answer {
    let form = Form(form_urlencoded::parse(body).into_owned().collect());
    let request_id = core.request_id();
    let Some(action) = form.get("Action") else {
        let missing = ApiError::ec2("MissingAction", "The request is missing an Action parameter");
        return Ok(error(&missing, &request_id));
    };
    let Some((name, parameters, effect)) = ACTIONS.iter().find(|(name, ..)| *name == action) else {
        let message = format!("The action {action} is not valid for this web service.");
        return Ok(error(&ApiError::ec2("InvalidAction", message), &request_id));
    };
    let outcome = core.with(|world, now| {
        world.call(Service::Ec2, name, now, |world| {
            form.check_emulated(name, parameters)?;
            effect(world, &form)
        })
    });
    Ok(match outcome {
        Ok(inner) => named(answer(200, XML, document(name, &request_id, &inner)), &request_id),
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
    named(answer(error.status, XML, body), request_id)
}

/// Adds the request id of the body as a header.
fn named(mut response: Response, request_id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn tag_set(tags: impl Iterator<Item = (impl AsRef<str>, impl AsRef<str>)>) -> String {
    list("tagSet", tags.map(|(key, value)| text("key", key) + &text("value", value)))
}

fn next_token(next: Option<String>) -> String {
    next.map(|next| text("nextToken", next)).unwrap_or_default()
}
