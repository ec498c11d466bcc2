//! Tags of EC2's resources (EC2 user guide, "Tag your Amazon EC2 resources").

use std::collections::BTreeMap;

use crate::{ApiError, World};

const MOST_TAGS: usize = 50;
const LONGEST_KEY: usize = 128;
const LONGEST_VALUE: usize = 256;

/// The values of tags by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(pub BTreeMap<String, String>);

impl Tags {
    /// Returns keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn check(&self) -> Result<(), ApiError> {
        if self.0.len() > MOST_TAGS {
            let message = format!("More than {MOST_TAGS} tags specified");
            return Err(ApiError::ec2("TagLimitExceeded", message));
        }
        for (key, value) in &self.0 {
            let message = if key.is_empty() || key.chars().count() > LONGEST_KEY {
                format!("Tag key '{key}' must have 1 to {LONGEST_KEY} characters")
            } else if value.chars().count() > LONGEST_VALUE {
                format!("Tag value exceeds the maximum length of {LONGEST_VALUE} characters")
            } else if key.starts_with("aws:") {
                "Tag keys starting with 'aws:' are reserved for internal use".to_owned()
            } else {
                continue;
            };
            return Err(ApiError::ec2("InvalidParameterValue", message));
        }
        Ok(())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Tags {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Tags(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

impl World {
    /// Adds tags to volumes, snapshots and instances, which replace tags with the same key. Either all get them or none
    /// does.
    ///
    /// # Errors
    /// `….NotFound` for unknown ids, `InvalidID` for other types of resources, `TagLimitExceeded`,
    /// `InvalidParameterValue`.
    pub fn create_tags(&mut self, resources: &[String], tags: &Tags) -> Result<(), ApiError> {
        if resources.is_empty() || tags.0.is_empty() {
            let missing = if resources.is_empty() { "resourceIdSet" } else { "tagSet" };
            let message = format!("The request must contain the parameter {missing}");
            return Err(ApiError::ec2("MissingParameter", message));
        }
        tags.check()?;
        for id in resources {
            self.tagged(id, tags)?.check()?;
        }
        for id in resources {
            let new = self.tagged(id, tags)?;
            if let Some(volume) = self.ebs.volumes.get_mut(id) {
                volume.tags = new;
            } else if let Some(snapshot) = self.ebs.snapshots.get_mut(id) {
                snapshot.tags = new;
            } else if let Some(instance) = self.instances.get_mut(id) {
                instance.tags = new.0.into_iter().collect();
            }
        }
        Ok(())
    }

    /// Returns the tags of a volume, snapshot or instance; `None` if there is none of this id. A container instance,
    /// named by its ARN, has the tags of its instance, because `infra/compute.yaml` sets
    /// `ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM`.
    pub fn tags(&self, id: &str) -> Option<Tags> {
        let volume = || self.ebs.volumes.get(id).map(|volume| volume.tags.clone());
        let snapshot = || self.ebs.snapshots.get(id).map(|snapshot| snapshot.tags.clone());
        let hosted = || self.instances().find(|instance| instance.container_instance_arn == id);
        let instance = || self.instance(id).or_else(hosted);
        let instance = || instance().map(|instance| Tags(instance.tags.iter().cloned().collect()));
        volume().or_else(snapshot).or_else(instance)
    }

    /// Returns what a resource's tags will be.
    fn tagged(&mut self, id: &str, tags: &Tags) -> Result<Tags, ApiError> {
        let mut all = match id.split_once('-') {
            Some(("vol", _)) => self.find_volume(id)?.tags.clone(),
            Some(("snap", _)) => self.find_snapshot(id)?.tags.clone(),
            Some(("i", _)) => self.tags_of_instance(id)?,
            Some(_) | None => {
                return Err(ApiError::ec2("InvalidID", format!("The ID '{id}' is not valid")));
            }
        };
        all.0.extend(tags.0.clone());
        Ok(all)
    }

    fn tags_of_instance(&self, id: &str) -> Result<Tags, ApiError> {
        crate::ec2::check_instance_id(id)?;
        let instance = self.instance(id).ok_or_else(|| crate::instance::instance_not_found(&[id]))?;
        Ok(Tags(instance.tags.iter().cloned().collect()))
    }
}
