//! Parameter Store's answers: the parameters that were added, without their values.

use spotsweep_control_plane::calls::{CallError, DescribeParameters, Page, Parameter, Ssm, Wait};

use super::client::Client;

impl<W: Wait> Ssm for Client<'_, W> {
    /// A page may be empty although another one follows (fact 71).
    async fn describe_parameters(&self, wanted: DescribeParameters) -> Result<Page<Parameter>, CallError> {
        self.on(("ssm", "DescribeParameters"), None, || match wanted.next_token {
            None => Page { items: Vec::new(), next_token: Some("second".to_owned()) },
            Some(_) => {
                let found = |name: String| {
                    let is_encrypted = self.cloud.parameter(&name)?;
                    Some(Parameter { name, is_encrypted })
                };
                Page { items: wanted.names.into_iter().filter_map(found).collect(), next_token: None }
            }
        })
        .await
    }
}
