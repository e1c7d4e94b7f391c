//! A person at the prompt.

use super::colours::Kind as Colour;
use super::commands::{Command, command_of};
use super::history::{History, history_path};
use super::keyboard::Keyboard;
use super::keys::Keys;
use super::prompt::{Prompt, Typed};
use super::running::run;
use super::screen::Screen;
use super::session::{Aside, Session};
use crate::connection::suggesting;
use crate::failures::{Done, Failure};
use crate::interruption::presses;
use crate::repl::{Wanted, entered};
use everforge::{Everforge, Fallible, Kind};
use std::sync::{Arc, OnceLock};

pub async fn talk(wanted: Wanted) -> Done {
    let told = Arc::new(OnceLock::<Arc<Screen>>::new()); // there is none before there is a connection
    let teller = told.clone();
    let tell = move |connected: bool| {
        if let Some(screen) = teller.get() {
            screen.say(if connected { "connected again" } else { "connection lost, reconnecting..." });
        }
    };
    let server = Everforge::builder().on_connection(tell).build()?;
    let machine = entered(&server, &wanted).await?;
    let info = suggesting(wanted.name.as_deref(), async { Ok(machine.info().await?) }).await?;
    let repl = machine.repl().await?;
    let screen = told.get_or_init(|| Screen::new(&info.name)).clone();
    screen.say(&format!("{} at {} ({}). %help shows what there is; Ctrl-D leaves.", info.name, server.base_url(), info.state));
    let session = Session::begin(machine, repl, screen.clone(), wanted.shows_others);
    let done = sit_down(&session, server.base_url(), wanted.timeout_seconds).await;
    session.close().await;
    done?;
    screen.say(&format!("{0} stays as it is: `everforge repl {0}` goes on here.", info.name));
    Ok(())
}

/// The terminal is ours until this ends.
async fn sit_down(session: &Arc<Session>, base_url: &str, timeout_seconds: Option<f64>) -> Done {
    let keys = Arc::new(Keys::default());
    let keyboard = Keyboard::new(keys.clone()).map_err(|error| Failure::local("the terminal", &error))?;
    let (mut signals, queue) = (presses(), keyboard.queue());
    let _hearing = Aside::begin(async move {
        loop {
            signals.next().await;
            queue.signalled();
        }
    });
    let history = History::new(history_path(base_url));
    let prompt = Prompt::new(keyboard, session.screen.clone(), history, session.machine.clone());
    Ok(Person { session, prompt, keys, timeout_seconds }.work().await?)
}

struct Person<'a> {
    session: &'a Arc<Session>,
    prompt: Prompt,
    keys: Arc<Keys>,
    timeout_seconds: Option<f64>,
}

impl Person<'_> {
    async fn work(mut self) -> Fallible<()> {
        loop {
            match self.typed().await? {
                Typed::Left => return Ok(()),
                Typed::Text(text) if !text.trim().is_empty() => self.act(&text).await?,
                Typed::Text(_) | Typed::ThrownAway => {}
            }
        }
    }

    /// What ends the session ends the prompt.
    async fn typed(&mut self) -> Fallible<Typed> {
        self.keys.forget();
        let error = tokio::select! {
            typed = self.prompt.read() => return Ok(typed),
            error = self.session.failure() => error,
        };
        self.prompt.end("");
        Err(error)
    }

    async fn act(&mut self, text: &str) -> Fallible<()> {
        let done = match command_of(text) {
            None => run(self.session, &self.keys, text, self.timeout_seconds).await,
            Some(command) => self.shown(command).await,
        };
        match done {
            Err(error) if !error.is_a(Kind::MachineNotFound) && !self.session.has_failed() => {
                self.session.screen.tell(Colour::Error, &format!("everforge: {}", error.message));
                Ok(())
            }
            done => done,
        }
    }

    /// A command of the prompt's. Ctrl-C stops waiting for it.
    async fn shown(&mut self, command: Command<'_>) -> Fallible<()> {
        let Session { machine, screen, .. } = &**self.session;
        tokio::select! {
            said = command.run(machine) => screen.tell(Colour::Value, &said?),
            () = self.keys.pressed() => screen.say("no longer waited for"),
        }
        Ok(())
    }
}
