"""What a machine may reach. No I/O: a policy is asked before anything is looked up or connected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from everforge.wire.errors import InvalidInput

from .rules import RULES_MAX, WEB_PORTS, Rule, parse_rule

Word = Literal["none", "list", "packages", "public"]
Place = tuple[str, int]  # host and port
Speech = Literal["http", "tls", "tcp"]  # what is spoken over a connection; tcp: anything
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True, slots=True)
class Policy:
    """`none`: nothing. `list`: what the rules allow. `packages`: the package index and the rules. `public`: the web, and the rules."""

    word: Word
    rules: tuple[Rule, ...] = ()

    @property
    def allow(self) -> list[str]:
        return [rule.text for rule in self.rules]


@dataclass(frozen=True, slots=True)
class Grant:
    """A connection that a policy allows, and how far."""

    speech: Speech
    by: str  # what allowed it: a rule, or the policy's word
    index: bool = False  # to the package index, or where its files lie


@dataclass(frozen=True, slots=True)
class Refusal:
    why: str  # a sentence that names what refused it


def make_policy(word: object, allow: object = ()) -> Policy:
    """Raises InvalidInput."""
    if word not in WORDS:
        raise InvalidInput(f"egress must be one of {', '.join(WORDS)}, not {str(word)[:60]!r}")
    if isinstance(allow, str) or not isinstance(allow, Sequence) or not all(isinstance(text, str) for text in allow):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidInput("egress rules are a list of hosts such as api.example.com or *.example.com:8443")
    texts: list[str] = list(allow)  # pyright: ignore[reportUnknownArgumentType]
    if len(texts) > RULES_MAX:
        raise InvalidInput(f"a machine may have {RULES_MAX} egress rules, not {len(texts)}")
    rules = {rule.text: rule for rule in map(parse_rule, texts)}
    return Policy(word, tuple(rules.values()))


def within(policy: Policy, widest: Word) -> Policy:
    """The policy as far as the server's maximum lets it: `packages` allows no rules, `list` everything but the whole web."""
    if widest == "public" or policy.word == "none":
        return policy
    if widest == "none":
        return Policy("none")
    if widest == "packages":
        return Policy("packages" if policy.word in ("packages", "public") else "none")
    return Policy("packages" if policy.word == "public" else policy.word, policy.rules)


def decide(policy: Policy, host: str, port: int, speech: Speech, index: Collection[Place], opened: Collection[Place] = ()) -> Grant | Refusal:
    """`host` is in its normal spelling. `index` are the package index and where its files lie, `opened` what the
    owner of the server has opened exactly."""
    if policy.word == "none":
        return Refusal("the egress policy of this machine is `none`: it reaches nothing")
    # By how far they go, whatever order they were given in. The index may lie where no rule leads, and so comes before a rule for its host.
    matching = [rule for rule in policy.rules if rule.matches(host, port)]
    if speech == "tls" and (tcp := next((rule for rule in matching if rule.tcp), None)):
        return Grant("tcp", f"rule {tcp.text}")
    if policy.word != "list" and (host, port) in index:
        return Grant(speech, "packages", index=True)
    if matching:
        return Grant(speech, f"rule {matching[0].text}")
    if policy.word == "public" and (port in WEB_PORTS or (host, port) in opened):
        return Grant(speech, "public")
    if policy.word == "public":
        return Refusal(f"the egress policy `public` of this machine is for the web, and port {port} of {host} is not 80 or 443")
    what = {"list": "allows only the hosts on its list", "packages": "allows only the package index"}[policy.word]
    return Refusal(f"the egress policy `{policy.word}` of this machine {what}, and {host}:{port} is not one of them")
