//! Calls on services that the World does not have: EventBridge, SNS, the price list. Also draws claim tokens.

use std::io;

use serde_json::json;
use spotsweep_control_plane::calls::{
    CallError, Draw, EventBridge, EventEntry, GetProducts, Pricing, Publish, Sns, Wait,
};
use spotsweep_protocol::secret::Secret;

use super::client::Client;

impl<W: Wait> EventBridge for Client<'_, W> {
    async fn put_events(&self, entry: EventEntry) -> Result<Vec<(String, String)>, CallError> {
        self.on(("events", "PutEvents"), None, || self.cloud.announce(entry)).await?
    }
}

impl<W: Wait> Sns for Client<'_, W> {
    async fn publish(&self, _wanted: Publish) -> Result<(), CallError> {
        self.on(("sns", "Publish"), None, || ()).await
    }
}

impl<W: Wait> Pricing for Client<'_, W> {
    async fn get_products(&self, wanted: GetProducts) -> Result<Vec<String>, CallError> {
        let usd = self.on(("pricing", "GetProducts"), None, || {
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
