//! Secrets Manager's answers: the secrets that were added, without their values.

use spotsweep_control_plane::calls::{CallError, DescribedSecret, SecretsManager, Wait};

use super::client::Client;

impl<W: Wait> SecretsManager for Client<'_, W> {
    async fn describe_secret(&self, name: String) -> Result<DescribedSecret, CallError> {
        let describe = || match self.cloud.managed_secret(&name) {
            Some(is_being_deleted) => Ok(DescribedSecret { is_being_deleted }),
            None => {
                let message = "Secrets Manager can't find the specified secret.".to_owned();
                Err(CallError::answered(400, "ResourceNotFoundException".to_owned(), message))
            }
        };
        self.on(("secretsmanager", "DescribeSecret"), None, describe).await?
    }
}
