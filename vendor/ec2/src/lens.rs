pub(crate) fn reflens_describe_instances_output_output_next_token(
    input: &crate::operation::describe_instances::DescribeInstancesOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_describe_launch_template_versions_output_output_next_token(
    input: &crate::operation::describe_launch_template_versions::DescribeLaunchTemplateVersionsOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_describe_snapshots_output_output_next_token(
    input: &crate::operation::describe_snapshots::DescribeSnapshotsOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_describe_spot_price_history_output_output_next_token(
    input: &crate::operation::describe_spot_price_history::DescribeSpotPriceHistoryOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_describe_volumes_output_output_next_token(
    input: &crate::operation::describe_volumes::DescribeVolumesOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_instances_output_output_reservations(
    input: crate::operation::describe_instances::DescribeInstancesOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::Reservation>> {
    let input = input.reservations?;
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_launch_template_versions_output_output_launch_template_versions(
    input: crate::operation::describe_launch_template_versions::DescribeLaunchTemplateVersionsOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::LaunchTemplateVersion>> {
    let input = input.launch_template_versions?;
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_snapshots_output_output_snapshots(
    input: crate::operation::describe_snapshots::DescribeSnapshotsOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::Snapshot>> {
    let input = input.snapshots?;
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_spot_price_history_output_output_spot_price_history(
    input: crate::operation::describe_spot_price_history::DescribeSpotPriceHistoryOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::SpotPrice>> {
    let input = input.spot_price_history?;
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_volumes_output_output_volumes(
    input: crate::operation::describe_volumes::DescribeVolumesOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::Volume>> {
    let input = input.volumes?;
    ::std::option::Option::Some(input)
}
