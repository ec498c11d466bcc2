//! EC2's wire: the query protocol. `Action=…` in a form body, XML back.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;

use super::xml::{list, node, text};
use super::{Answer, answer, dropped};
use crate::driver::Core;
use crate::world::ec2::{DescribeInstances, Filter};
use crate::world::{ApiError, Failure, Instance, InstanceState, Service, World, whole_seconds};

type Action = fn(&mut World, &Form) -> Result<String, ApiError>;

const ACTIONS: [(&str, Action); 3] = [
    ("DescribeInstances", |world, form| describe_instances(world, form)),
    ("TerminateInstances", |world, form| terminate_instances(world, form)),
    ("DescribeAvailabilityZones", |world, _form| Ok(describe_zones(world))),
];

/// The decoded parameters.
struct Form(BTreeMap<String, String>);

impl Form {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
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
}

pub(super) async fn call(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    let form = Form(form_urlencoded::parse(&body).into_owned().collect());
    let request_id = core.request_id();
    let Some(action) = form.get("Action") else {
        let missing = ApiError::ec2("MissingAction", "The request is missing an Action parameter");
        return Ok(error(&missing, &request_id));
    };
    let Some((name, effect)) = ACTIONS.iter().find(|(name, _)| *name == action) else {
        let message = format!("The action {action} is not valid for this web service.");
        return Ok(error(&ApiError::ec2("InvalidAction", message), &request_id));
    };
    let outcome = core.with(|world, now| world.call(Service::Ec2, name, now, |world| effect(world, &form)));
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

fn describe_instances(world: &World, form: &Form) -> Result<String, ApiError> {
    let max_results = form.get("MaxResults").map(|given| {
        given.parse().map_err(|_| ApiError::ec2("InvalidParameterValue", format!("MaxResults is no number: {given}")))
    });
    let (instances, next) = world.describe_instances(&DescribeInstances {
        instance_ids: form.list("InstanceId"),
        filters: form.filters(),
        max_results: max_results.transpose()?,
        next_token: form.get("NextToken").map(str::to_owned),
    })?;
    // Batch launches by fleets: one reservation for each instance.
    let reservations = instances.into_iter().map(|instance| {
        let reservation = instance.id.replacen("i-", "r-", 1);
        text("reservationId", reservation)
            + &text("ownerId", &world.settings().account)
            + &list("instancesSet", [instance_xml(instance)])
    });
    let token = next.map(|next| text("nextToken", next)).unwrap_or_default();
    Ok(list("reservationSet", reservations) + &token)
}

fn state_xml(name: &str, state: InstanceState) -> String {
    node(name, [text("code", state.code().to_string()), text("name", state.as_str())])
}

fn instance_xml(instance: &Instance) -> String {
    let tags = instance.tags.iter().map(|(key, value)| text("key", key) + &text("value", value));
    let mut fields = vec![
        text("instanceId", &instance.id),
        state_xml("instanceState", instance.state),
        text("instanceType", &instance.instance_type),
        text("launchTime", whole_seconds(instance.launched_at)),
        node("placement", [text("availabilityZone", &instance.zone), text("tenancy", "default")]),
        text("subnetId", &instance.subnet),
        list("tagSet", tags),
    ];
    if instance.spot {
        fields.push(text("instanceLifecycle", "spot"));
    }
    if let Some((code, message)) = instance.state_reason {
        fields.push(node("stateReason", [text("code", code), text("message", message)]));
    }
    fields.concat()
}

fn terminate_instances(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let changes = world.terminate_instances(&form.list("InstanceId"))?;
    let entries = changes.into_iter().map(|(id, from, to)| {
        text("instanceId", id) + &state_xml("currentState", to) + &state_xml("previousState", from)
    });
    Ok(list("instancesSet", entries))
}

fn describe_zones(world: &World) -> String {
    let settings = world.settings();
    let entries = settings.zones.iter().map(|zone| {
        text("zoneName", zone)
            + &text("zoneState", "available")
            + &text("regionName", &settings.region)
            + &text("zoneType", "availability-zone")
    });
    list("availabilityZoneInfo", entries)
}
