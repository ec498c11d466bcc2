//! Checks whether a container can see which GPUs it has been given, by the image of a compute environment's instances.

use aws_sdk_batch::types::ComputeEnvironmentDetail;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::Image;

use super::finding::Finding;

const ABOUT: &str = "GPU image";
/// Tag of images that `infra/gpu-ami.yaml` has built. Its value is the mode of NVIDIA's runtime, which no call shows.
const MODE_TAG: &str = "spotsweep:nvidia-runtime";
/// The mode in which the runtime shows a container its GPUs (fact 57).
const NAMING: &str = "legacy";

/// Checks each image that the environment names. AWS's own images do not show the GPUs, and need not: ECS reports them.
pub(super) async fn look(client: &Client, environment: &ComputeEnvironmentDetail) -> Vec<Finding> {
    let name = environment.compute_environment_name().unwrap_or_default();
    let configured = environment.compute_resources().map(|resources| resources.ec2_configuration()).unwrap_or_default();
    let ids: Vec<&str> = configured.iter().filter_map(|configured| configured.image_id_override()).collect();
    if ids.is_empty() {
        return Vec::new();
    }
    // The image is found by a filter, because an unknown id would be an error otherwise.
    let filter = aws_sdk_ec2::types::Filter::builder().name("image-id");
    let filter = filter.set_values(Some(ids.iter().map(|id| (*id).to_owned()).collect())).build();
    match client.describe_images().filters(filter).send().await {
        Ok(described) => ids.iter().map(|id| judge(name, id, described.images())).collect(),
        Err(error) => vec![Finding::refused(ABOUT, "ec2:DescribeImages", &error)],
    }
}

fn judge(environment: &str, id: &str, images: &[Image]) -> Finding {
    let Some(image) = images.iter().find(|image| image.image_id() == Some(id)) else {
        let said = format!("{environment}: there is no image {id} that this account may use: no instance starts");
        return Finding::problem(ABOUT, said, "deploy with the id of one that is there as GpuAmi, or with none");
    };
    let mode = image.tags().iter().find(|tag| tag.key() == Some(MODE_TAG)).and_then(|tag| tag.value());
    if mode == Some(NAMING) {
        let said = format!("{environment}: {id} names a container's GPUs in the container, and ECS names them as well");
        return Finding::ok(ABOUT, said);
    }
    let said = format!(
        "{environment}: {id} does not show whether it names a container's GPUs in the container: trials learn them from ECS alone"
    );
    let fix = "nothing, as long as ECS names them; an image of infra/gpu-ami.yaml names them as well (docs/deploy.md)";
    Finding::look(ABOUT, said, fix)
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::Tag;

    use super::super::finding::State;
    use super::*;

    #[test]
    fn an_image_is_there_and_shows_its_mode_by_a_tag() {
        let image = |tag: Option<(&str, &str)>| {
            let tag = tag.map(|(key, value)| Tag::builder().key(key).value(value).build());
            Image::builder().image_id("ami-1").set_tags(tag.map(|tag| vec![tag])).build()
        };
        for (images, expected) in [
            (vec![], State::Problem),
            (vec![image(None)], State::Look),
            (vec![image(Some(("spotsweep:image", "gpu")))], State::Look),
            (vec![image(Some((MODE_TAG, "auto")))], State::Look),
            (vec![image(Some((MODE_TAG, NAMING)))], State::Ok),
        ] {
            assert_eq!(judge("spot", "ami-1", &images).state, expected, "{images:?}");
        }
    }

    /// The check looks for the mode that the build sets.
    #[test]
    fn the_recipe_of_this_project_has_the_tag() {
        let recipe = include_str!("../../../../infra/gpu-ami.yaml");
        assert!(recipe.contains(&format!("\"{MODE_TAG}\": {NAMING}")));
    }
}
