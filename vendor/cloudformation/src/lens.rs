pub(crate) fn reflens_describe_stack_events_output_output_next_token(
    input: &crate::operation::describe_stack_events::DescribeStackEventsOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_describe_stacks_output_output_next_token(
    input: &crate::operation::describe_stacks::DescribeStacksOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_stack_events_output_output_stack_events(
    input: crate::operation::describe_stack_events::DescribeStackEventsOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::StackEvent>> {
    let input = input.stack_events?;
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_describe_stacks_output_output_stacks(
    input: crate::operation::describe_stacks::DescribeStacksOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::Stack>> {
    let input = input.stacks?;
    ::std::option::Option::Some(input)
}
