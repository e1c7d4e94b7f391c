//! A server, as a program sees it.

use crate::audit::Audit;
use crate::config::{Access, find_access};
use crate::door::{Ask, Door, OnConnection, RETRY_SECONDS, new_key};
use crate::egress::{EgressDefault, Secrets};
use crate::error::Fallible;
use crate::generated::api;
use crate::inputs::{finite, wait_seconds};
use crate::machine::Machine;
use crate::options::{awaited, lists, paged, pairs, setters, streamed};
use crate::tokens::{Accounts, Tokens};
use crate::webhooks::Webhooks;
use futures::stream::BoxStream;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

const MACHINES_A_PAGE: i64 = 500;

/// A client of one server, with one token. Clones share their connections.
///
/// ```no_run
/// # async fn example() -> everforge::Fallible<()> {
/// use everforge::Everforge;
/// use futures::TryStreamExt;
///
/// let client = Everforge::builder().token("id.secret").base_url("https://everforge.example.com").retry_seconds(10).build()?;
/// let machine = client.create().name("guide").tag("project", "demo").memory_mb(512).await?;
/// let mut machines = client.machines().tag("project", "demo");
/// while let Some(found) = machines.try_next().await? {
///     println!("{} is {}", found.name, found.state);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Everforge {
    door: Arc<Door>,
}

impl fmt::Debug for Everforge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<everforge at {}>", self.door.base_url)
    }
}

impl Everforge {
    /// Finds its server by itself: the environment, what `everforge login` left, or the server on this computer.
    pub fn new() -> Fallible<Self> {
        Self::builder().build()
    }

    /// With what is given.
    pub fn builder() -> Builder {
        Builder { access: None, token: None, base_url: None, retry_seconds: RETRY_SECONDS, on_connection: None }
    }

    /// Of its server.
    pub fn base_url(&self) -> &str {
        &self.door.base_url
    }

    /// Nothing more is asked by this client or a clone of it, and whoever waits for something is told so; machines go on.
    pub fn close(&self) {
        self.door.close();
    }

    // --- machines ----------------------------------------------------------------------------------------------------------------------------

    /// A new machine; what is not given is as the server has it.
    pub fn create(&self) -> Create {
        Create { door: self.door.clone(), request: api::NewMachine::default() }
    }

    /// One that is there already. Asks nobody; whether it is there shows when it is used.
    pub fn machine(&self, name: &str) -> Fallible<Machine> {
        Machine::new(self.door.clone(), name)
    }

    /// Newest first; a stream that pages by itself.
    pub fn machines(&self) -> Machines {
        Machines { door: self.door.clone(), tags: Vec::new(), state: None, prefix: None, after: None, running: None }
    }

    // --- the account -------------------------------------------------------------------------------------------------------------------------

    /// The account's name.
    pub async fn whoami(&self) -> Fallible<String> {
        Ok(self.door.get::<api::Whoami>("/whoami", &[]).await?.account)
    }

    /// The account.
    pub async fn account(&self) -> Fallible<api::Account> {
        self.door.get("/account", &[]).await
    }

    /// What it has and has used.
    pub async fn usage(&self) -> Fallible<api::Usage> {
        self.door.get("/usage", &[]).await
    }

    /// Tokens of the account.
    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.door.clone())
    }

    /// Accounts of the server, for its owner.
    pub fn accounts(&self) -> Accounts {
        Accounts::new(self.door.clone())
    }

    /// Values that machines use and never see.
    pub fn secrets(&self) -> Secrets {
        Secrets::new(self.door.clone())
    }

    /// The way out of new machines.
    pub fn egress(&self) -> EgressDefault {
        EgressDefault::new(self.door.clone())
    }

    /// Who did what.
    pub fn audit(&self) -> Audit {
        Audit::new(self.door.clone())
    }

    /// Who is told of what happens.
    pub fn webhooks(&self) -> Webhooks {
        Webhooks::new(self.door.clone())
    }
}

/// What a client may be given.
#[must_use = "there is no client before build()"]
pub struct Builder {
    access: Option<Access>,
    token: Option<String>,
    base_url: Option<String>,
    retry_seconds: f64,
    on_connection: Option<OnConnection>,
}

impl Builder {
    setters! {
        /// A token; its server must be given, too, or run on this computer.
        token: String => token;
        /// Of the server; without a token, one for it is looked for.
        base_url: String => base_url;
        /// Both, found before.
        access: Access => access;
    }

    /// For how long a request is tried again, where that is safe and may help.
    pub fn retry_seconds(mut self, seconds: impl Into<f64>) -> Self {
        self.retry_seconds = seconds.into();
        self
    }

    /// Told false when a stream has lost the server, and true when it has found it again.
    pub fn on_connection(mut self, told: impl Fn(bool) + Send + Sync + 'static) -> Self {
        self.on_connection = Some(Arc::new(told));
        self
    }

    /// Asks nobody: whether the server is there shows when it is used.
    pub fn build(self) -> Fallible<Everforge> {
        let access = match self.access {
            Some(access) => access,
            None => find_access(self.token.as_deref(), self.base_url.as_deref())?,
        };
        wait_seconds("retry_seconds", Some(self.retry_seconds))?;
        Ok(Everforge { door: Arc::new(Door::new(&access, self.retry_seconds, self.on_connection)?) })
    }
}

/// A new machine, to be made with `.await`.
#[must_use = "nothing is made before .await"]
pub struct Create {
    door: Arc<Door>,
    request: api::NewMachine,
}

impl Create {
    pairs! {
        /// Words to find it by.
        tag, tags => request.tags;
        /// Environment variables of everything that runs in it.
        env, envs => request.env;
    }
    setters! {
        /// What it is called; without one it is given a name.
        name: String => request.name;
        /// Its memory.
        memory_mb: i64 => request.memory_mb;
        /// Its share of processors.
        cpus: f64 => request.cpus;
        /// Its disk.
        disk_mb: i64 => request.disk_mb;
        /// How many processes it may have.
        processes: i64 => request.processes;
        /// What is installed in it.
        image: String => request.image;
        /// What it may reach.
        egress: api::Egress => request.egress;
        /// How long it may be idle before it sleeps.
        idle_seconds: f64 => request.idle_seconds;
        /// When it is deleted.
        expires_at: String => request.expires_at;
        /// When points to go back to are kept.
        history: api::When => request.history;
        /// When what was done is safe from a power cut.
        durability: api::When => request.durability;
    }
    lists! {
        /// Hosts that it may reach beyond that.
        egress_allow: String => request.egress_allow;
    }

    /// Whatever a program wants to keep with it.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.request.metadata = Some(metadata.into_iter().collect());
        self
    }

    /// As it was in a snapshot, by id or name, of that machine.
    pub fn from_snapshot(mut self, machine: impl Into<String>, snapshot: impl Into<String>) -> Self {
        self.request.from_snapshot = Some(api::SnapshotRef { machine: machine.into(), snapshot: snapshot.into() });
        self
    }

    async fn send(self) -> Fallible<Machine> {
        finite("cpus", self.request.cpus)?;
        finite("idle_seconds", self.request.idle_seconds)?;
        let made: api::MachineCreated = self.door.post("/machine/new", Ask::post(&self.request)?.key(new_key()?)).await?;
        Machine::new(self.door, &made.machine_name)
    }
}

awaited!(Create => Machine);

/// Machines of the account: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Machines {
    door: Arc<Door>,
    tags: Vec<(String, String)>,
    state: Option<api::State>,
    prefix: Option<String>,
    after: Option<String>,
    running: Option<BoxStream<'static, Fallible<api::ListedMachine>>>,
}

impl Machines {
    /// One more that must match.
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.tags.retain(|(known, _)| *known != name);
        self.tags.push((name, value.into()));
        self
    }

    /// All of them must match, in place of those given before.
    pub fn tags<N: Into<String>, V: Into<String>>(mut self, tags: impl IntoIterator<Item = (N, V)>) -> Self {
        self.tags.clear();
        tags.into_iter().fold(self, |this, (name, value)| this.tag(name, value))
    }

    setters! {
        /// In this state alone.
        state: api::State => state;
        /// Whose names begin so.
        prefix: String => prefix;
        /// Behind a page that was read before: its `next`.
        after: String => after;
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<api::ListedMachine>> {
        let mut filter: Vec<(&'static str, Option<String>)> =
            self.tags.iter().map(|(name, value)| ("tag", Some(format!("{name}={value}")))).collect();
        filter.push(("state", self.state.take().map(String::from)));
        filter.push(("name_prefix", self.prefix.take()));
        filter.push(("limit", Some(MACHINES_A_PAGE.to_string())));
        let door = self.door.clone();
        paged(self.after.take(), move |after| {
            let (door, mut query) = (door.clone(), filter.clone());
            query.push(("after", after));
            Box::pin(async move {
                let page: api::MachineList = door.get("/machine/list", &query).await?;
                Ok((page.machines, page.next.map(Some)))
            })
        })
    }
}

streamed!(Machines => api::ListedMachine);
