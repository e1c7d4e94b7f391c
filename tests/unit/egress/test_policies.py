"""Rules as people write them, and what a policy makes of them."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.egress.policy import WORDS, Grant, Policy, Refusal, Speech, Word, decide, make_policy, within
from everforge.egress.rules import RULES_MAX, parse_rule
from everforge.wire.errors import InvalidInput

INDEX = frozenset({("index.example", 443), ("files.example", 8443)})

SPELLINGS = {
    "Example.COM": "example.com", "example.com.": "example.com", "https://example.com/": "example.com", "*.Example.com": "*.example.com",
    "example.com:8443": "example.com:8443", "example.com:*": "example.com:*", "tcp://DB.example:5432": "tcp://db.example:5432",
    "0x7f000001:9000": "127.0.0.1:9000", "[::1]:9000": "[::1]:9000", "::1": "[::1]", "bücher.example": "xn--bcher-kva.example",
    "*.a.b.example:444": "*.a.b.example:444", "tcp://*.db.example:5432": "tcp://*.db.example:5432",
}  # fmt: skip
NO_RULES = [
    "", "*", "*.", "*.*.com", "a.*.com", "example.com:0", "example.com:65536", "example.com:http", "example.com:-1", "example.com:٣", "tcp://db.example",
    "tcp://db.example:*", "ftp://example.com", "example.com/path", "user@example.com", "*.127.0.0.1", "a b", "http://", "[::1", "example.com:80:80", "a" * 300,
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_rule_has_one_spelling_which_is_a_rule_again(text: str) -> None:
    rule = parse_rule(text)
    assert rule.text == SPELLINGS[text]
    assert parse_rule(rule.text) == rule


@pytest.mark.parametrize("text", NO_RULES)
def test_what_is_no_rule_is_said_to_be_none(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_rule(text)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_invalid_input(text: str) -> None:
    try:
        rule = parse_rule(text)
    except InvalidInput:
        return
    assert parse_rule(rule.text) == rule


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        ("example.com", [("example.com", 80), ("example.com", 443)], [("example.com", 22), ("www.example.com", 443), ("example.com.evil", 443), ("notexample.com", 443)]),
        ("*.example.com", [("a.example.com", 443), ("a.b.example.com", 80)], [("example.com", 443), ("aexample.com", 443), ("a.example.com", 25)]),
        ("example.com:8443", [("example.com", 8443)], [("example.com", 443), ("example.com", 80)]),
        ("example.com:*", [("example.com", 1), ("example.com", 65535)], [("a.example.com", 443)]),
        ("tcp://db.example:5432", [("db.example", 5432)], [("db.example", 443)]),
        ("127.0.0.1:9000", [("127.0.0.1", 9000)], [("127.0.0.1", 80), ("localhost", 9000)]),
    ],
)  # fmt: skip
def test_a_rule_allows_what_it_names_and_no_more(rule: str, allowed: list[tuple[str, int]], refused: list[tuple[str, int]]) -> None:
    policy = make_policy("list", [rule])
    assert all(isinstance(decide(policy, *place, "tls", ()), Grant) for place in allowed)
    assert all(isinstance(decide(policy, *place, "tls", ()), Refusal) for place in refused)


def test_none_reaches_nothing_not_even_by_a_rule() -> None:
    policy = Policy("none", (parse_rule("example.com"),))
    found = decide(policy, "example.com", 443, "tls", INDEX)
    assert isinstance(found, Refusal)
    assert "`none`" in found.why


def test_packages_is_the_index_and_where_its_files_lie_at_their_ports() -> None:
    policy = make_policy("packages")
    assert decide(policy, "index.example", 443, "tls", INDEX) == Grant("tls", "packages", index=True)
    assert decide(policy, "files.example", 8443, "tls", INDEX) == Grant("tls", "packages", index=True)
    assert isinstance(decide(policy, "files.example", 443, "tls", INDEX), Refusal)
    assert isinstance(decide(make_policy("list", ["a.example"]), "index.example", 443, "tls", INDEX), Refusal)


@pytest.mark.parametrize("port", [21, 22, 25, 465, 587, 6667, 8080])
def test_public_is_the_web_and_no_other_port(port: int) -> None:
    found = decide(make_policy("public"), "example.com", port, "tls", INDEX)
    assert isinstance(found, Refusal)
    assert f"port {port}" in found.why


def test_plain_tcp_needs_a_rule_that_says_so() -> None:
    tcp, web = make_policy("list", ["tcp://db.example:5432"]), make_policy("list", ["db.example:5432"])
    assert decide(tcp, "db.example", 5432, "tls", ()) == Grant("tcp", "rule tcp://db.example:5432")
    assert decide(web, "db.example", 5432, "tls", ()) == Grant("tls", "rule db.example:5432")
    for both in (["tcp://db.example:5432", "db.example:5432"], ["db.example:5432", "tcp://db.example:5432"]):
        assert decide(make_policy("list", both), "db.example", 5432, "tls", ()) == Grant("tcp", "rule tcp://db.example:5432")


@pytest.mark.parametrize("rule", ["index.example", "*.example"])
def test_a_rule_that_names_the_index_takes_nothing_from_it(rule: str) -> None:
    """It may lie at an address that no rule opens."""
    assert decide(make_policy("packages", [rule]), "index.example", 443, "tls", INDEX) == Grant("tls", "packages", index=True)


@settings(deadline=None)
@given(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS),
    st.booleans(),
    st.sampled_from(["r.example", "index.example", "any.example"]),
    st.sampled_from(get_args(Speech)),
)
def test_a_maximum_never_widens_and_never_lets_more_through_than_itself(word: Word, widest: Word, ruled: bool, host: str, speech: Speech) -> None:
    asked = Policy(word, (parse_rule("r.example"),) if ruled else ())
    held = within(asked, widest)
    granted = [isinstance(decide(policy, host, 443, speech, INDEX), Grant) for policy in (asked, held)]
    assert granted[0] or not granted[1]
    assert within(held, widest) == held
    if widest == "none":
        assert not granted[1]
    if widest == "packages":
        assert not granted[1] or host == "index.example"
    if widest == "list":
        assert host != "any.example" or not granted[1]
    if widest == "public":
        assert held == asked


@pytest.mark.parametrize(
    ("word", "allow"), [("all", ()), (None, ()), ("list", "example.com"), ("list", [1]), ("list", {"a": 1}), ("list", [f"h{n}.example" for n in range(RULES_MAX + 1)])]
)  # fmt: skip
def test_what_is_no_policy_is_invalid_input(word: Any, allow: Any) -> None:
    with pytest.raises(InvalidInput):
        make_policy(word, allow)


def test_a_rule_given_twice_counts_once() -> None:
    assert make_policy("list", ["Example.com", "example.com."]).allow == ["example.com"]
