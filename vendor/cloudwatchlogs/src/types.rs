pub use crate::types::_get_log_object_response_stream::GetLogObjectResponseStream;
pub use crate::types::_start_live_tail_response_stream::StartLiveTailResponseStream;
pub use crate::types::_query_compile_error::QueryCompileError;
pub use crate::types::_filtered_log_event::FilteredLogEvent;
pub use crate::types::_searched_log_stream::SearchedLogStream;
pub use crate::types::_output_log_event::OutputLogEvent;
pub use crate::types::_fields_data::FieldsData;
pub use crate::types::_live_tail_session_start::LiveTailSessionStart;
pub use crate::types::_live_tail_session_update::LiveTailSessionUpdate;
pub use crate::types::_query_compile_error_location::QueryCompileErrorLocation;
pub use crate::types::_live_tail_session_metadata::LiveTailSessionMetadata;
pub use crate::types::_live_tail_session_log_event::LiveTailSessionLogEvent;
mod _fields_data;
mod _filtered_log_event;
mod _get_log_object_response_stream;
mod _live_tail_session_log_event;
mod _live_tail_session_metadata;
mod _live_tail_session_start;
mod _live_tail_session_update;
mod _output_log_event;
mod _query_compile_error;
mod _query_compile_error_location;
mod _searched_log_stream;
mod _start_live_tail_response_stream;
/// Builders
pub mod builders;
/// Error types that Amazon CloudWatch Logs can respond with.
pub mod error;
