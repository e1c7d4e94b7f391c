//! Webhooks of the account.

use crate::door::{Ask, Door, nothing};
use crate::error::Fallible;
use crate::generated::api;
use crate::inputs::segment;
use crate::options::{awaited, lists, setters};
use std::sync::Arc;

/// Who is told of what happens.
#[derive(Debug, Clone)]
pub struct Webhooks {
    door: Arc<Door>,
}

impl Webhooks {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// All of them.
    pub async fn list(&self) -> Fallible<Vec<api::Webhook>> {
        Ok(self.door.get::<api::WebhookList>("/webhooks", &[]).await?.webhooks)
    }

    /// Its `secret` is shown this once. Without events: all but `instruction.ended`.
    pub fn add(&self, url: impl Into<String>) -> AddWebhook {
        AddWebhook { door: self.door.clone(), request: api::NewWebhook { url: url.into(), events: None, secret: None } }
    }

    /// With all that is on its way to it.
    pub async fn delete(&self, id: &str) -> Fallible<()> {
        self.door.delete(&format!("/webhooks/{}", segment(id)?), &[]).await
    }

    /// Sends it one event now; `WebhookFailed` says why it did not arrive.
    pub async fn test(&self, id: &str) -> Fallible<()> {
        self.door.post::<api::WebhookTested>(&format!("/webhooks/{}/test", segment(id)?), Ask::post(&nothing())?).await.map(|_| ())
    }

    /// What was tried often enough, newest first.
    pub async fn dead(&self) -> Fallible<Vec<api::Delivery>> {
        Ok(self.given_up().await?.deliveries)
    }

    /// The same, and how many older ones there was no room for.
    pub async fn given_up(&self) -> Fallible<api::DeliveryList> {
        self.door.get("/webhooks/dead", &[]).await
    }

    /// One of them, or all, is tried anew; how many.
    pub fn retry(&self) -> RetryDead {
        RetryDead { door: self.door.clone(), request: api::RetryDead::default() }
    }
}

/// A webhook, to be added with `.await`.
#[must_use = "nothing is added before .await"]
pub struct AddWebhook {
    door: Arc<Door>,
    request: api::NewWebhook,
}

impl AddWebhook {
    setters! {
        /// What signs what is sent; without one it is given.
        secret: String => request.secret;
    }
    lists! {
        /// What it is told of.
        events: String => request.events;
    }

    async fn send(self) -> Fallible<api::WebhookCreated> {
        self.door.post("/webhooks", Ask::post(&self.request)?).await
    }
}

awaited!(AddWebhook => api::WebhookCreated);

/// Deliveries to be tried anew with `.await`.
#[must_use = "nothing is tried before .await"]
pub struct RetryDead {
    door: Arc<Door>,
    request: api::RetryDead,
}

impl RetryDead {
    setters! {
        /// This one alone.
        id: String => request.id;
    }

    async fn send(self) -> Fallible<i64> {
        Ok(self.door.post::<api::Retried>("/webhooks/dead/retry", Ask::post(&self.request)?).await?.deliveries)
    }
}

awaited!(RetryDead => i64);
