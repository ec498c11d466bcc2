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

#[cfg(test)]
mod tests {
    use spotsweep_control_plane::settings::LEASE;

    use crate::harness::Harness;
    use crate::invocation::InvocationFault;

    /// A rejection quotes the invalid value, which may be longer than an event.
    #[test]
    fn a_rejection_fits_into_an_event() {
        let harness = Harness::new(1);
        let long = "x".repeat(1 << 20);
        let event =
            harness.put("long.yaml", &format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{snapshot: {long}}}}}\n"));
        let answer = harness.invoke(&event).answer.unwrap();
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(harness.cloud.take_announced().len(), 1);
    }

    /// `PutEvents` answers 200 although it has not taken the entry.
    #[test]
    fn what_the_bus_does_not_take_is_sent_again() {
        let mut harness = Harness::new(1);
        let event = harness.put("bad.yaml", "trials: []\n");
        let fault = InvocationFault { entry_error: Some("InternalFailure"), ..InvocationFault::default() };
        assert!(harness.invoke_with(&event, fault).answer.unwrap().is_err());
        assert!(harness.cloud.take_announced().is_empty());
        harness.pass(LEASE);
        assert!(harness.invoke(&event).answer.unwrap().is_ok());
        assert_eq!(harness.cloud.take_announced().len(), 1);
    }
}
