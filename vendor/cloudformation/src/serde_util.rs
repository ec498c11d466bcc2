pub(crate) fn stack_correct_errors(mut builder: crate::types::builders::StackBuilder) -> crate::types::builders::StackBuilder {
    if builder.stack_name.is_none() {
        builder.stack_name = Some(Default::default())
    }
    if builder.creation_time.is_none() {
        builder.creation_time = Some(::aws_smithy_types::DateTime::from_fractional_secs(0, 0_f64))
    }
    if builder.stack_status.is_none() {
        builder.stack_status = "no value was set".parse::<crate::types::StackStatus>().ok()
    }
    builder
}
pub(crate) fn stack_event_correct_errors(mut builder: crate::types::builders::StackEventBuilder) -> crate::types::builders::StackEventBuilder {
    if builder.stack_id.is_none() {
        builder.stack_id = Some(Default::default())
    }
    if builder.event_id.is_none() {
        builder.event_id = Some(Default::default())
    }
    if builder.stack_name.is_none() {
        builder.stack_name = Some(Default::default())
    }
    if builder.timestamp.is_none() {
        builder.timestamp = Some(::aws_smithy_types::DateTime::from_fractional_secs(0, 0_f64))
    }
    builder
}
pub(crate) fn tag_correct_errors(mut builder: crate::types::builders::TagBuilder) -> crate::types::builders::TagBuilder {
    if builder.key.is_none() {
        builder.key = Some(Default::default())
    }
    if builder.value.is_none() {
        builder.value = Some(Default::default())
    }
    builder
}
pub(crate) fn rollback_trigger_correct_errors(
    mut builder: crate::types::builders::RollbackTriggerBuilder,
) -> crate::types::builders::RollbackTriggerBuilder {
    if builder.arn.is_none() {
        builder.arn = Some(Default::default())
    }
    if builder.r#type.is_none() {
        builder.r#type = Some(Default::default())
    }
    builder
}
pub(crate) fn stack_drift_information_correct_errors(
    mut builder: crate::types::builders::StackDriftInformationBuilder,
) -> crate::types::builders::StackDriftInformationBuilder {
    if builder.stack_drift_status.is_none() {
        builder.stack_drift_status = "no value was set".parse::<crate::types::StackDriftStatus>().ok()
    }
    builder
}
