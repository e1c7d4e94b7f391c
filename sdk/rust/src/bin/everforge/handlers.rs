//! Which module does what.

use crate::failures::Done;
use crate::usage::Given;
use crate::{account, audit, egress, login, machine, repl, secret, signup, token, used, webhook, whoami};
use futures::future::BoxFuture;

/// What a command does, to be waited for.
pub fn handle(given: Given) -> BoxFuture<'static, Done> {
    let path: Vec<&str> = given.command.path.iter().map(String::as_str).collect();
    match path[..] {
        ["signup"] => Box::pin(signup::signup(given)),
        ["login"] => Box::pin(login::login(given)),
        ["logout"] => Box::pin(async move { login::logout(&given) }),
        ["whoami"] => Box::pin(whoami::whoami(given)),
        ["usage"] => Box::pin(used::usage(given)),
        ["repl"] | ["machine", "repl"] => Box::pin(repl::repl(given)),
        ["machine", "files", below] => files(below, given),
        ["machine", below] => machine(below, given),
        ["token", "new"] => Box::pin(token::create(given)),
        ["token", "list"] => Box::pin(token::list(given)),
        ["token", "link"] => Box::pin(token::link(given)),
        ["token", "revoke"] => Box::pin(token::revoke(given)),
        ["account", "list"] => Box::pin(account::list(given)),
        ["account", "new"] => Box::pin(account::create(given)),
        ["account", "delete"] => Box::pin(account::delete(given)),
        ["account", "quota"] => Box::pin(account::quota(given)),
        ["account", "invite"] => Box::pin(account::invite(given)),
        ["egress", "show"] => Box::pin(egress::policy::show(given)),
        ["egress", "allow"] => Box::pin(egress::policy::allow(given)),
        ["egress", "deny"] => Box::pin(egress::policy::deny(given)),
        ["egress", "set"] => Box::pin(egress::policy::set(given)),
        ["egress", "default"] => Box::pin(egress::policy::set_default(given)),
        ["egress", "log"] => Box::pin(egress::log::log(given)),
        ["secret", "set"] => Box::pin(secret::set(given)),
        ["secret", "list"] => Box::pin(secret::list(given)),
        ["secret", "delete"] => Box::pin(secret::delete(given)),
        ["audit"] => Box::pin(audit::show::show(given)),
        ["audit", "verify"] => Box::pin(audit::verify::verify(given)),
        ["audit", "export"] => Box::pin(audit::export::export(given)),
        ["webhook", "add"] => Box::pin(webhook::add(given)),
        ["webhook", "list"] => Box::pin(webhook::list(given)),
        ["webhook", "test"] => Box::pin(webhook::test(given)),
        ["webhook", "delete"] => Box::pin(webhook::delete(given)),
        ["webhook", "dead", "list"] => Box::pin(webhook::list_dead(given)),
        ["webhook", "dead", "retry"] => Box::pin(webhook::retry_dead(given)),
        _ => nothing(&given),
    }
}

fn machine(below: &str, given: Given) -> BoxFuture<'static, Done> {
    match below {
        "new" => Box::pin(machine::new::create(given)),
        "list" => Box::pin(machine::list::list(given)),
        "show" => Box::pin(machine::show::show(given)),
        "exec" => Box::pin(machine::exec::exec(given)),
        "logs" => Box::pin(machine::logs::logs(given)),
        "interrupt" => Box::pin(machine::interrupt::interrupt(given)),
        "fork" => Box::pin(machine::fork::fork(given)),
        "snapshot" => Box::pin(machine::snapshot::snapshot(given)),
        "rollback" => Box::pin(machine::back::rollback(given)),
        "reset" => Box::pin(machine::back::reset(given)),
        "hibernate" => Box::pin(machine::sleep::hibernate(given)),
        "wake" => Box::pin(machine::sleep::wake(given)),
        "tag" => Box::pin(machine::tag::tag(given)),
        "delete" => Box::pin(machine::delete::delete(given)),
        _ => nothing(&given),
    }
}

fn files(below: &str, given: Given) -> BoxFuture<'static, Done> {
    match below {
        "list" => Box::pin(machine::files::list::list(given)),
        "get" => Box::pin(machine::files::get::get(given)),
        "put" => Box::pin(machine::files::put::put(given)),
        "delete" => Box::pin(machine::files::delete::delete(given)),
        _ => nothing(&given),
    }
}

fn nothing(given: &Given) -> ! {
    unreachable!("nothing does `{}`", given.command.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::grammar;

    #[test]
    fn something_does_every_command_that_there_is() {
        let runs = grammar().commands.iter().filter(|command| !command.group || command.runs_alone && !command.path.is_empty());
        let found: Vec<_> = runs.map(|command| handle(Given::nothing(command))).collect(); // not one of them is begun
        assert!(found.len() > 50, "{}", found.len());
    }
}
