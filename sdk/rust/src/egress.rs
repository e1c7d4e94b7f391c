//! The way out: of one machine, of the account's new machines, and the secrets that are put in outside.

use crate::door::{Ask, Door};
use crate::error::Fallible;
use crate::generated::api;
use crate::inputs::{secret_name, segment};
use crate::options::{awaited, lists, paged, setters};
use futures::Stream;
use reqwest::Method;
use std::sync::Arc;

const ATTEMPTS_A_PAGE: i64 = 200;

/// Of one machine.
#[derive(Debug, Clone)]
pub struct Egress {
    door: Arc<Door>,
    path: String,
}

impl Egress {
    pub(crate) fn new(door: Arc<Door>, path: &str) -> Self {
        Self { door, path: format!("{path}/egress") }
    }

    /// What it may reach now.
    pub async fn show(&self) -> Fallible<api::EgressPolicy> {
        self.door.get(&self.path, &[]).await
    }

    /// none, list (what the rules allow), packages (the package index, and the rules), or public. It counts at once. none drops the rules.
    pub async fn set(&self, policy: impl Into<api::Egress>) -> Fallible<api::EgressPolicy> {
        self.change(&api::EgressChange { egress: Some(policy.into()), ..Default::default() }).await
    }

    /// A host (`api.example.com`), all below one (`*.example.com`), a port (`example.com:8443`), or plain TCP (`tcp://db.example.com:5432`).
    pub async fn allow<T: Into<String>>(&self, rules: impl IntoIterator<Item = T>) -> Fallible<api::EgressPolicy> {
        let allow = Some(rules.into_iter().map(Into::into).collect());
        self.change(&api::EgressChange { allow, ..Default::default() }).await
    }

    /// Takes rules away again.
    pub async fn deny<T: Into<String>>(&self, rules: impl IntoIterator<Item = T>) -> Fallible<api::EgressPolicy> {
        let deny = Some(rules.into_iter().map(Into::into).collect());
        self.change(&api::EgressChange { deny, ..Default::default() }).await
    }

    /// Everything that it has tried to reach, newest first; pages by itself.
    pub fn log(&self) -> impl Stream<Item = Fallible<api::EgressAttempt>> + Send + Unpin + use<> {
        let (door, path) = (self.door.clone(), format!("{}/log", self.path));
        paged(None::<i64>, move |before| {
            let (door, path) = (door.clone(), path.clone());
            Box::pin(async move {
                let query = [("before", before.map(|before| before.to_string())), ("limit", Some(ATTEMPTS_A_PAGE.to_string()))];
                let page: api::EgressLog = door.get(&path, &query).await?;
                Ok((page.attempts, page.next.map(Some)))
            })
        })
    }

    async fn change(&self, change: &api::EgressChange) -> Fallible<api::EgressPolicy> {
        self.door.post(&self.path, Ask::post(change)?).await
    }
}

/// Of the account's new machines.
#[derive(Debug, Clone)]
pub struct EgressDefault {
    door: Arc<Door>,
}

impl EgressDefault {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// What a new machine may reach.
    pub async fn show(&self) -> Fallible<api::EgressPolicy> {
        self.door.get("/egress", &[]).await
    }

    /// With nothing given: the server's own default again.
    pub fn set(&self) -> SetEgressDefault {
        SetEgressDefault { door: self.door.clone(), request: api::EgressDefault::default() }
    }
}

/// What new machines may reach, to be set with `.await`.
#[must_use = "nothing is set before .await"]
pub struct SetEgressDefault {
    door: Arc<Door>,
    request: api::EgressDefault,
}

impl SetEgressDefault {
    setters! {
        /// none, list, packages or public.
        policy: api::Egress => request.egress;
    }
    lists! {
        /// Hosts beyond that.
        allow: String => request.egress_allow;
    }

    async fn send(self) -> Fallible<api::EgressPolicy> {
        self.door.post("/egress", Ask::post(&self.request)?.method(Method::PUT).again()).await
    }
}

awaited!(SetEgressDefault => api::EgressPolicy);

/// Values that machines use and never see.
#[derive(Debug, Clone)]
pub struct Secrets {
    door: Arc<Door>,
}

impl Secrets {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// Machines have a placeholder in the environment variable `name`. In requests to these hosts, over TLS alone, the value takes its place: in
    /// headers, and where `places` say so.
    pub fn set<T: Into<String>>(&self, name: impl Into<String>, value: impl Into<String>, hosts: impl IntoIterator<Item = T>) -> SetSecret {
        let hosts = hosts.into_iter().map(Into::into).collect();
        let request = api::NewSecret { value: value.into(), hosts, header: None, places: None };
        SetSecret { door: self.door.clone(), name: name.into(), request }
    }

    /// Without their values.
    pub async fn list(&self) -> Fallible<Vec<api::Secret>> {
        Ok(self.door.get::<api::SecretList>("/secrets", &[]).await?.secrets)
    }

    /// By its name.
    pub async fn delete(&self, name: &str) -> Fallible<()> {
        self.door.delete(&format!("/secrets/{}", segment(secret_name(name)?)?), &[]).await
    }
}

/// A secret, to be set with `.await`.
#[must_use = "nothing is set before .await"]
pub struct SetSecret {
    door: Arc<Door>,
    name: String,
    request: api::NewSecret,
}

impl SetSecret {
    setters! {
        /// As in `Authorization: Bearer {}`: put in by itself.
        header: String => request.header;
    }
    lists! {
        /// Beside headers.
        places: api::Place => request.places;
    }

    async fn send(self) -> Fallible<api::Secret> {
        let path = format!("/secrets/{}", segment(secret_name(&self.name)?)?);
        self.door.post(&path, Ask::post(&self.request)?.method(Method::PUT).again()).await
    }
}

awaited!(SetSecret => api::Secret);
