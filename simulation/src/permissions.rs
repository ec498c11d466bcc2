//! Reads from the deployed template which permissions each function has, and which events its rule passes to it.

mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spotsweep_protocol::wildcards::is_like;

use crate::calls::Call;

/// The template that is deployed.
pub const CONTROL_PLANE: &str = include_str!("../../infra/control-plane.yaml");

/// The template of the instances, with policies for roles of the control plane.
const COMPUTE: &str = include_str!("../../infra/compute.yaml");

/// Properties of a deployed function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// MB of memory.
    pub memory: u64,
    /// `(source, detail type)` of the events that its rule passes to it.
    pub events: BTreeSet<(String, String)>,
    /// Permissions of its role: by action, such as `s3:GetObject`, the resources as written in the template.
    pub permissions: BTreeMap<String, BTreeSet<String>>,
}

/// All functions of a template, by name without prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// The functions by name.
    pub functions: BTreeMap<String, Function>,
}

impl Permissions {
    /// Reads a template.
    ///
    /// # Errors
    /// What differs from the form of the control plane's template.
    pub fn of_template(text: &str) -> Result<Self, String> {
        let (template, compute) = (yaml::read(text)?, yaml::read(COMPUTE)?);
        let resources = template["Resources"].as_object().ok_or("no Resources")?;
        let mut functions = BTreeMap::new();
        for (name, resource) in resources.iter().filter(|(_, found)| found["Type"] == "AWS::Serverless::Function") {
            let properties = &resource["Properties"];
            let function = properties["FunctionName"].as_str().and_then(|name| name.strip_prefix("${NamePrefix}"));
            let role = properties["Role"].as_str().and_then(|role| role.strip_suffix(".Arn"));
            let (function, role) = function.zip(role).ok_or_else(|| format!("{name}: no FunctionName or no Role"))?;
            let permissions = of_role(&[&template, &compute], role)?;
            let all = &template["Globals"]["Function"]["MemorySize"];
            let memory = [&properties["MemorySize"], all].into_iter().find_map(number);
            let memory = memory.ok_or_else(|| format!("{name}: no MemorySize"))?;
            let events = events(&properties["Events"]);
            functions.insert(function.to_owned(), Function { memory, events, permissions });
        }
        Ok(Self { functions })
    }

    /// The function that receives an event. A runner's request goes to the function without a rule.
    pub fn function_of(&self, event: &Value) -> Option<&str> {
        let (source, kind) = (event["source"].as_str(), event["detail-type"].as_str());
        let is_for = |function: &Function| match source.zip(kind) {
            None => function.events.is_empty(),
            Some(wanted) => function.events.iter().any(|(source, kind)| (source.as_str(), kind.as_str()) == wanted),
        };
        self.functions.iter().find(|(_, function)| is_for(function)).map(|(name, _)| name.as_str())
    }

    /// Removes an action from a function's permissions.
    pub(crate) fn revoke(&mut self, function: &str, action: &str) {
        if let Some(function) = self.functions.get_mut(function) {
            function.permissions.remove(action);
        }
    }

    /// The first permission for a call that a function lacks.
    pub fn lacks(&self, function: &str, call: &Call) -> Option<String> {
        let held = self.functions.get(function)?;
        let needed = needed(call);
        let is_held = |action: &&String| {
            let resources = held.permissions.get(*action);
            resources.is_some_and(|all| all.iter().any(|resource| covers(resource, call.on.as_deref())))
        };
        let missing = needed.iter().find(|action| !is_held(action))?;
        Some(format!(
            "{function} may not {missing}{}",
            call.on.iter().map(|on| format!(" on {on}")).collect::<String>()
        ))
    }
}

/// The permissions that IAM requires for a call: mostly one with the call's own name. Tags at creation need a permission
/// of their own (<https://docs.aws.amazon.com/ebs/latest/userguide/supported-iam-actions-tagging.html>).
pub fn needed(call: &Call) -> Vec<String> {
    let named: &[&str] = match call.action {
        "ListObjectsV2" => &["s3:ListBucket"],
        "CreateMultipartUpload" | "UploadPart" | "CompleteMultipartUpload" => &["s3:PutObject"],
        "RegisterJobDefinition" => &["batch:RegisterJobDefinition", "batch:TagResource", "iam:PassRole"],
        "SubmitJob" => &["batch:SubmitJob", "batch:TagResource"],
        // Calls for several jobs have no actions of their own, according to the API reference.
        "TerminateJobs" => &["batch:TerminateJob"],
        "CancelJobs" => &["batch:CancelJob"],
        "AssumeRole" => &["sts:AssumeRole", "sts:TagSession"],
        "CreateVolume" => &["ec2:CreateVolume", "ec2:CreateTags"],
        "CreateSnapshot" => &["ec2:CreateSnapshot", "ec2:CreateTags"],
        own => return vec![format!("{}:{own}", call.service)],
    };
    named.iter().copied().map(str::to_owned).collect()
}

/// Whether a resource of the template covers the call's S3 key or index, if it has one.
fn covers(resource: &str, on: Option<&str>) -> bool {
    let inner = resource.strip_prefix("${Bucket.Arn}/").or_else(|| resource.strip_prefix("${Table.Arn}/"));
    match (inner, on) {
        (None, None) => true,
        (Some(pattern), Some(on)) => is_like(pattern, on),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn of_role(templates: &[&Value], role: &str) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let template = templates[0];
    let properties = &template["Resources"][role]["Properties"];
    let managed = list(&properties["ManagedPolicyArns"]).into_iter().map(|name| {
        let policy = &template["Resources"][name.as_str()]["Properties"]["PolicyDocument"];
        if policy.is_null() { Err(format!("{role}: no policy {name} here")) } else { Ok(policy) }
    });
    // Policies that name the roles to which they are attached. Another template has parameters with the roles' names.
    let resources = templates.iter().filter_map(|template| template["Resources"].as_object());
    let naming = resources.flat_map(|resources| resources.values());
    let naming =
        naming.filter(|found| found["Type"] == "AWS::IAM::ManagedPolicy" || found["Type"] == "AWS::IAM::Policy");
    let naming =
        naming.map(|found| &found["Properties"]).filter(|found| list(&found["Roles"]).iter().any(|of| of == role));
    let naming = naming.map(|found| Ok(&found["PolicyDocument"]));
    // A policy under a condition, which is a list here, is for optional parts of a deployment, such as traces.
    let own = properties["Policies"].as_array().into_iter().flatten().map(|policy| Ok(&policy["PolicyDocument"]));
    let mut permissions = BTreeMap::<String, BTreeSet<String>>::new();
    for document in managed.chain(naming).chain(own) {
        for statement in document?["Statement"].as_array().into_iter().flatten() {
            // What is denied depends on parameters of the deployment, and tests/iam decides it.
            if statement["Effect"] == "Deny" {
                continue;
            }
            for action in list(&statement["Action"]) {
                permissions.entry(action).or_default().extend(list(&statement["Resource"]));
            }
        }
    }
    Ok(permissions)
}

fn events(events: &Value) -> BTreeSet<(String, String)> {
    let mut kinds = BTreeSet::new();
    for event in events.as_object().into_iter().flatten().map(|(_, event)| event) {
        if event["Type"] == "Schedule" {
            kinds.insert(("aws.events".to_owned(), "Scheduled Event".to_owned()));
        }
        let pattern = &event["Properties"]["Pattern"];
        for source in list(&pattern["source"]) {
            kinds.extend(list(&pattern["detail-type"]).into_iter().map(|kind| (source.clone(), kind)));
        }
    }
    kinds
}

/// Parses a number, which the template's reader leaves as text.
fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// One text or a list of them.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![],
    }
}
