//! What the words of command lines mean, and what is said about those that mean nothing.

use super::*;

fn given(words: &[&str]) -> Given {
    match wished(words) {
        Ok(Wish::Run(given)) => given,
        Ok(_) => panic!("{words:?} is no command to run"),
        Err(failure) => panic!("{words:?}: {}", failure.message()),
    }
}

fn wished(words: &[&str]) -> Result<Wish, Failure> {
    read(&words.iter().map(OsString::from).collect::<Vec<_>>())
}

fn refused(words: &[&str]) -> String {
    match wished(words) {
        Err(failure) => failure.message(),
        Ok(_) => panic!("{words:?} was taken"),
    }
}

#[test]
fn options_and_arguments_come_in_any_order() {
    let found = given(&["machine", "exec", "--env", "a=b", "first", "--json", "1 + 1", "--env=c=d=e"]);
    assert_eq!(found.required("name"), "first");
    assert_eq!(found.required("code"), "1 + 1");
    assert!(found.json());
    assert_eq!(found.pairs("env", "--env").ok().flatten().unwrap_or_default(), [("a".into(), "b".into()), ("c".into(), "d=e".into())]);
}

#[test]
fn an_option_takes_the_next_word_whatever_it_is() {
    assert_eq!(given(&["machine", "new", "--name", "--json"]).text("name").as_deref(), Some("--json"));
    assert_eq!(given(&["machine", "logs", "a", "--after", "-1"]).int("after"), Some(-1));
    assert_eq!(given(&["machine", "new", "--name="]).text("name").as_deref(), Some(""));
    assert_eq!(given(&["machine", "new", "--name", "a", "--name", "b"]).text("name").as_deref(), Some("b"));
}

#[test]
fn behind_two_dashes_there_are_no_options() {
    let found = given(&["machine", "exec", "a", "--", "-x"]);
    assert_eq!(found.required("code"), "-x");
    assert_eq!(given(&["--", "machine", "--", "list"]).command.words(), "everforge machine list");
}

#[test]
fn several_words_are_kept_around_options() {
    let found = given(&["machine", "fork", "a", "b", "--json", "c"]);
    assert_eq!(found.texts("new"), ["b", "c"]);
}

#[test]
fn a_group_alone_is_asked_for_help_and_audit_runs() {
    assert!(matches!(wished(&["machine"]), Ok(Wish::Help(found)) if found.words() == "everforge machine"));
    assert!(matches!(wished(&[]), Ok(Wish::Help(found)) if found.path.is_empty()));
    assert!(matches!(wished(&["machine", "-h", "shw"]), Ok(Wish::Help(found)) if found.words() == "everforge machine"));
    assert!(matches!(wished(&["machine", "show", "-h", "x"]), Ok(Wish::Help(found)) if found.words() == "everforge machine show"));
    assert!(matches!(wished(&["machine", "--", "-h"]), Ok(Wish::Help(found)) if found.words() == "everforge machine"));
    assert!(matches!(wished(&["--version"]), Ok(Wish::Version)));
    assert!(matches!(wished(&["--version", "machine"]), Ok(Wish::Version)));
    assert!(matches!(wished(&["--"]), Ok(Wish::Nothing)));
    assert_eq!(given(&["audit", "--last", "3"]).int("last"), Some(3));
    assert!(matches!(wished(&["audit", "--json", "-h"]), Ok(Wish::Help(found)) if found.words() == "everforge audit"));
}

#[test]
fn wrong_words_are_answered_with_the_sentences_of_the_python_command_line() {
    for (words, sentence) in [
        (&["nonsense"][..], "no such command 'nonsense': see `everforge --help`"),
        (
            &["serve", "--port", "0"],
            "`everforge serve` comes with the Python package alone, as the server does; `pip install everforge` installs it: see `everforge --help`",
        ),
        (&["machine", "shw"], "no such command 'shw'. Did you mean 'show'?: see `everforge machine --help`"),
        (&["machine", "--"], "missing command: see `everforge machine --help`"),
        (&["machine", "--", "--foo"], "no such option: --foo: see `everforge machine --help`"),
        (&["machine", "-h", "--foo"], "no such option: --foo: see `everforge machine --help`"),
        (&["audit", "--", "verify", "--foo"], "no such option: --foo: see `everforge audit verify --help`"),
        (&["machine", "delete", "-y=1"], "no such option: -=: see `everforge machine delete --help`"),
        (&["machine", ""], "no such command '': see `everforge machine --help`"),
        (&["--nonsense"], "no such option: --nonsense: see `everforge --help`"),
        (&["machine", "show"], "missing argument 'NAME': see `everforge machine show --help`"),
        (&["secret", "set"], "missing argument 'name': see `everforge secret set --help`"),
        (&["secret", "set", "X"], "missing option '--host': see `everforge secret set --help`"),
        (&["machine", "show", "a", "b", "c"], "got unexpected extra argument(s) (b c): see `everforge machine show --help`"),
        (&["machine", "show", "a", "--jsn"], "no such option: --jsn (Possible options: --json): see `everforge machine show --help`"),
        (&["machine", "show", "a", "--json=1"], "option '--json' does not take a value: see `everforge --help`"),
        (&["machine", "new", "--nam=x"], "no such option: --nam (Possible options: --env, --name, --tag): see `everforge machine new --help`"),
        (&["machine", "new", "--name"], "option '--name' requires an argument: see `everforge --help`"),
        (&["machine", "logs", "-fx", "a"], "no such option: -x: see `everforge machine logs --help`"),
        (&["machine", "-x"], "no such option: -x: see `everforge machine --help`"),
        (
            &["repl", "--instruction-timeout-seconds", "0"],
            "invalid value for '--instruction-timeout-seconds': Input should be greater than or equal to 0.001: see `everforge repl --help`",
        ),
        (&["audit", "--last", "501"], "invalid value for '--last': Input should be less than or equal to 500: see `everforge audit --help`"),
        (
            &["machine", "new", "--cpus", "x"],
            "invalid value for '--cpus': Input should be a valid number, unable to parse string as a number: see `everforge machine new --help`",
        ),
        (
            &["machine", "new", "--memory-mb", "1.5"],
            "invalid value for '--memory-mb': Input should be a valid integer, unable to parse string as an integer: see `everforge machine new --help`",
        ),
    ] {
        assert_eq!(refused(words), sentence, "{words:?}");
    }
}

#[test]
fn a_word_that_is_none_of_the_choices_is_answered_with_them() {
    let found = given(&["machine", "list", "--tag", "foo"]);
    let why = found.pairs("tag", "--tag").err().map(|failure| failure.message());
    assert_eq!(why.as_deref(), Some("invalid value for --tag: 'foo' is not KEY=VALUE: see `everforge machine list --help`"));
    let why = found.among(&["a", "b"], "--state", &["c".into()]).err().map(|failure| failure.message());
    assert_eq!(why.as_deref(), Some("invalid value for --state: 'c' is none of a, b: see `everforge machine list --help`"));
}
