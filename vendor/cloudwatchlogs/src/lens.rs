pub(crate) fn reflens_filter_log_events_output_output_next_token(
    input: &crate::operation::filter_log_events::FilterLogEventsOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn reflens_get_log_events_output_output_next_forward_token(
    input: &crate::operation::get_log_events::GetLogEventsOutput,
) -> ::std::option::Option<&::std::string::String> {
    let input = match &input.next_forward_token {
        ::std::option::Option::None => return ::std::option::Option::None,
        ::std::option::Option::Some(t) => t,
    };
    ::std::option::Option::Some(input)
}
pub(crate) fn lens_get_log_events_output_output_events(
    input: crate::operation::get_log_events::GetLogEventsOutput,
) -> ::std::option::Option<::std::vec::Vec<crate::types::OutputLogEvent>> {
    let input = input.events?;
    ::std::option::Option::Some(input)
}
