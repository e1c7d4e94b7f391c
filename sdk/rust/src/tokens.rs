//! The tokens of an account, and for the server's owner its accounts and invitations.

use crate::door::{Ask, Door, nothing};
use crate::error::Fallible;
use crate::generated::api;
use crate::inputs::{finite, segment};
use crate::options::{awaited, lists, pairs, setters};
use reqwest::Method;
use std::sync::Arc;

/// Of the account.
#[derive(Debug, Clone)]
pub struct Tokens {
    door: Arc<Door>,
}

impl Tokens {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// All of them, without their secrets.
    pub async fn list(&self) -> Fallible<Vec<api::Token>> {
        Ok(self.door.get::<api::TokenList>("/tokens", &[]).await?.tokens)
    }

    /// Its `token` is shown this once.
    pub fn create(&self) -> CreateToken {
        CreateToken { door: self.door.clone(), request: api::NewToken::default() }
    }

    /// At once; connections that use it are closed.
    pub async fn revoke(&self, id: &str) -> Fallible<()> {
        self.door.delete(&format!("/tokens/{}", segment(id)?), &[]).await
    }

    /// To be opened once, on another computer: whoever does has a token that may what this one may.
    pub async fn link(&self) -> Fallible<api::LogInLink> {
        self.door.post("/links", Ask::post(&nothing())?).await
    }
}

/// A token, to be made with `.await`.
#[must_use = "nothing is made before .await"]
pub struct CreateToken {
    door: Arc<Door>,
    request: api::NewToken,
}

impl CreateToken {
    pairs! {
        /// It is for machines that have all of these, and for nothing else.
        tag, tags => request.tags;
    }
    setters! {
        /// For people.
        name: String => request.name;
        /// When it ends.
        expires_at: String => request.expires_at;
    }
    lists! {
        /// What it may.
        scopes: api::Scope => request.scopes;
    }

    async fn send(self) -> Fallible<api::TokenCreated> {
        self.door.post("/tokens", Ask::post(&self.request)?).await
    }
}

awaited!(CreateToken => api::TokenCreated);

/// For the server's owner.
#[derive(Debug, Clone)]
pub struct Accounts {
    door: Arc<Door>,
}

impl Accounts {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// All of them.
    pub async fn list(&self) -> Fallible<Vec<api::Account>> {
        Ok(self.door.get::<api::AccountList>("/accounts", &[]).await?.accounts)
    }

    /// Its `token` is shown this once.
    pub fn create(&self, name: impl Into<String>) -> CreateAccount {
        CreateAccount { door: self.door.clone(), request: api::NewAccount { account_name: name.into(), email: None } }
    }

    /// With all its machines.
    pub async fn delete(&self, name: &str) -> Fallible<()> {
        self.door.delete(&format!("/accounts/{}", segment(name)?), &[]).await
    }

    /// What the account may have at most, after the change: what is not given stays; 0 is no limit, -1 what the server's settings say.
    pub fn quota(&self, name: impl Into<String>) -> ChangeQuota {
        ChangeQuota { door: self.door.clone(), name: name.into(), request: api::QuotaChange::default() }
    }

    /// Whoever has it can sign up once.
    pub fn invite(&self) -> Invite {
        Invite { door: self.door.clone(), request: api::NewInvitation::default() }
    }
}

/// An account, to be made with `.await`.
#[must_use = "nothing is made before .await"]
pub struct CreateAccount {
    door: Arc<Door>,
    request: api::NewAccount,
}

impl CreateAccount {
    setters! {
        /// Of its owner.
        email: String => request.email;
    }

    async fn send(self) -> Fallible<api::AccountCreated> {
        self.door.post("/accounts", Ask::post(&self.request)?).await
    }
}

awaited!(CreateAccount => api::AccountCreated);

/// What an account may have, to be changed with `.await`.
#[must_use = "nothing is changed before .await"]
pub struct ChangeQuota {
    door: Arc<Door>,
    name: String,
    request: api::QuotaChange,
}

impl ChangeQuota {
    setters! {
        /// How many machines.
        machines: i64 => request.machines;
        /// How many awake at once.
        awake: i64 => request.awake;
        /// Memory of those that are awake.
        memory_mb: i64 => request.memory_mb;
        /// Disk of all.
        disk_mb: i64 => request.disk_mb;
        /// How often it may ask.
        requests_per_second: f64 => request.requests_per_second;
        /// How much its machines may send and receive.
        egress_bytes_per_day: i64 => request.egress_bytes_per_day;
    }

    async fn send(self) -> Fallible<api::Quota> {
        finite("requests_per_second", self.request.requests_per_second)?;
        let path = format!("/accounts/{}/quota", segment(&self.name)?);
        self.door.post(&path, Ask::post(&self.request)?.method(Method::PATCH).again()).await
    }
}

awaited!(ChangeQuota => api::Quota);

/// An invitation, to be made with `.await`.
#[must_use = "nothing is made before .await"]
pub struct Invite {
    door: Arc<Door>,
    request: api::NewInvitation,
}

impl Invite {
    setters! {
        /// Of the one who is invited; nobody else can use it then.
        email: String => request.email;
        /// When it ends.
        expires_at: String => request.expires_at;
    }

    async fn send(self) -> Fallible<api::Invitation> {
        self.door.post("/invitations", Ask::post(&self.request)?).await
    }
}

awaited!(Invite => api::Invitation);
