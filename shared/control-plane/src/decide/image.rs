//! The job definition of a sweep that names a container image: like the one that it would use otherwise, with that image.
//!
//! SubmitJob cannot override the image of a container
//! (<https://docs.aws.amazon.com/batch/latest/APIReference/API_ContainerOverrides.html>), so each image has a definition
//! of its own. Its name follows from the image and from the revision that it is like, so it is found again.

use sha2::{Digest as _, Sha256};
use spotsweep_protocol::words::hexadecimal;
use spotsweep_records::sweep::Plan;
use spotsweep_records::sweep::target::Definition;

use crate::command::ImageDefinition;

/// How much of the other definition's name is in the name. Batch allows 128 characters (fact 19).
const NAME_LETTERS: usize = 100;

/// How many bytes of the hash are in the name.
const HASH_BYTES: usize = 8;

/// Returns the definition that is registered for the plan's image; `None` if the plan names no image, or the one that its
/// definition has. `like` is that definition.
///
/// # Errors
/// Returns why there can be none: a sweep names one image, and the definition has several containers.
pub(super) fn wanted(plan: &Plan, like: &Definition) -> Result<Option<ImageDefinition>, String> {
    let Some(image) = &plan.image else { return Ok(None) };
    match &like.image {
        None => Err(format!("job definition {} has several containers, and `image` names one image", like.arn)),
        Some(present) if present == image => Ok(None),
        Some(_) => {
            Ok(Some(ImageDefinition { name: name(&like.arn, image), like: like.arn.clone(), image: image.clone() }))
        }
    }
}

fn name(like: &str, image: &str) -> String {
    let short = like.rsplit('/').next().and_then(|name| name.split(':').next()).unwrap_or_default();
    let digest = Sha256::digest(format!("{like}\n{image}"));
    let hash = hexadecimal(&digest[..HASH_BYTES]);
    format!("{short:.NAME_LETTERS$}-image-{hash}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_image_has_a_definition_of_its_own_for_each_revision() {
        let like = "arn:aws:batch:us-east-1:000000000000:job-definition/spotsweep-train:7";
        let found = name(like, "pytorch/pytorch:2.9.0");
        assert_eq!(found, name(like, "pytorch/pytorch:2.9.0"));
        assert!(found.starts_with("spotsweep-train-image-"));
        let others = [name(like, "pytorch/pytorch:2.9.1"), name(&like.replace(":7", ":8"), "pytorch/pytorch:2.9.0")];
        assert!(!others.contains(&found) && others[0] != others[1]);
        let long = format!("arn:aws:batch:us-east-1:000000000000:job-definition/{}:7", "x".repeat(128));
        assert_eq!(name(&long, "a").len(), 100 + "-image-".len() + 16);
    }
}
