//! Calls on services that the World does not have: EventBridge, SNS, STS, the price list. And claim tokens.

use std::io;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_control_plane::calls::{
    AssumeRole, CallError, Draw, EventBridge, EventEntry, GetProducts, Pricing, Publish, Sns, Sts, Wait,
};
use spotsweep_protocol::claim::Access;
use spotsweep_protocol::secret::Secret;

use super::client::Client;

impl<W: Wait> EventBridge for Client<'_, W> {
    async fn put_events(&self, entry: EventEntry) -> Result<Vec<(String, String)>, CallError> {
        self.on("PutEvents", None, || self.cloud.announce(entry)).await?;
        Ok(Vec::new())
    }
}

impl<W: Wait> Sns for Client<'_, W> {
    async fn publish(&self, _wanted: Publish) -> Result<(), CallError> {
        self.on("Publish", None, || ()).await
    }
}

impl<W: Wait> Sts for Client<'_, W> {
    async fn assume_role(&self, wanted: AssumeRole) -> Result<Access, CallError> {
        let access = || Access {
            access_key_id: "ASIA".to_owned(),
            secret_access_key: wanted.role,
            session_token: wanted.session,
            expires_at: Timestamp::MAX,
        };
        self.on("AssumeRole", None, access).await
    }
}

impl<W: Wait> Pricing for Client<'_, W> {
    async fn get_products(&self, wanted: GetProducts) -> Result<Vec<String>, CallError> {
        let usd = self.on("GetProducts", None, || {
            let (_, name) = wanted.filters.iter().find(|(field, _)| *field == "instanceType")?;
            self.cloud.on_demand_usd(name)
        });
        let product = |usd: f64| {
            let dimension = json!({ "pricePerUnit": { "USD": usd.to_string() } });
            json!({ "terms": { "OnDemand": { "term": { "priceDimensions": { "hour": dimension } } } } }).to_string()
        };
        Ok(usd.await?.map(product).into_iter().collect())
    }
}

impl<W: Wait> Draw for Client<'_, W> {
    fn draw(&self) -> io::Result<Secret> {
        Ok(self.cloud.draw_token())
    }
}
