"""What belongs to an account: tokens, quotas, the way out, secrets, webhooks, the audit log."""

from __future__ import annotations

from everforge.server.answers import plain
from everforge.wire import api
from everforge.wire.audit import AuditEntry, AuditHead, Seen, seal
from everforge.wire.audit import plain as plain_seen

from ..lists import ACCOUNT
from .words import Json, M, ask, post, script, told, transcript


def call(group: str, method: str, gives: Json, on: str | None = None, **arguments: Json) -> dict[str, Json]:
    found: dict[str, Json] = {"do": "call", "with": {"group": group, "method": method, "arguments": arguments}, "gives": gives}
    return found if on is None else {**found, "on": on}


@transcript
def tokens_and_accounts() -> dict[str, Json]:
    token = api.Token(id="t1", name="n", scopes=["read"], tags={}, created_at="2030-01-01T00:00:00Z", last_used_at=None, expires_at=None)
    made = api.TokenCreated(**plain(token), token="t1.secret")
    quota = api.Quota(machines=5, awake=2, memory_mb=0, disk_mb=0, requests_per_second=1.5, egress_bytes_per_day=0)
    usage = api.Usage(machines=1, awake=1, asleep=0, broken=0, instructions=9, runtime_ms=5, disk_bytes=7, quota=quota)
    return script(
        "made, listed, taken away",
        [
            call("", "account", {"account": "ada", "owner": True}),
            call("", "usage", {"instructions": 9, "quota": {"requests_per_second": 1.5}}),
            call(
                "tokens",
                "create",
                {"token": "t1.secret", "scopes": ["read"]},
                name="n",
                scopes=["read"],
                expires_at="2031-01-01T00:00:00Z",
                tags={"a": "b"},
            ),
            call("tokens", "list", [{"id": "t1"}]),
            call("tokens", "revoke", None, id="t1"),
            call("tokens", "link", {"url": "http://x/login/1"}),
            call("accounts", "list", [{"account": "ada"}]),
            call("accounts", "create", {"account": "bob", "token": "b.c"}, name="bob", email="bob@example.org"),
            call("accounts", "quota", {"machines": 5}, name="bob", machines=5, requests_per_second=1.5),
            call("accounts", "invite", {"invitation": "i1"}, email="eve@example.org"),
            call("accounts", "delete", None, name="bob"),
        ],
        [
            told(ask("GET", "/account"), ACCOUNT),
            told(ask("GET", "/usage"), usage),
            told(post("/tokens", {"name": "n", "scopes": ["read"], "expires_at": "2031-01-01T00:00:00Z", "tags": {"a": "b"}}), made),
            told(ask("GET", "/tokens"), api.TokenList(tokens=[token])),
            told(ask("DELETE", "/tokens/t1"), api.Deleted(deleted=True)),
            told(post("/links", {}), api.LogInLink(url="http://x/login/1", expires_at="2030-01-01T00:00:00Z")),
            told(ask("GET", "/accounts"), api.AccountList(accounts=[ACCOUNT])),
            told(post("/accounts", {"account_name": "bob", "email": "bob@example.org"}), api.AccountCreated(account="bob", token="b.c")),
            told(post("/accounts/bob/quota", {"machines": 5, "requests_per_second": 1.5}, "PATCH"), quota),
            told(post("/invitations", {"email": "eve@example.org"}), api.Invitation(invitation="i1", expires_at="2030-01-01T00:00:00Z")),
            told(ask("DELETE", "/accounts/bob"), api.Deleted(deleted=True)),
        ],
    )


@transcript
def the_way_out() -> dict[str, Json]:
    policy = api.EgressPolicy(egress="list", egress_allow=["a.example.com"])
    attempt = api.EgressAttempt(
        number=3, time="2030-01-01T00:00:00Z", host="a.example.com", port=443, speech="tls", method="", path="", verdict="refused", why="no rule", allowed_by="",
        address="", sent_bytes=0, received_bytes=0, secrets=[], ended_at=None,
    )  # fmt: skip
    secret = api.Secret(name="KEY", placeholder="efsec", hosts=["a.example.com"], header=None, places=[], created_at="2030", changed_at="2030")
    gives = {"egress": "list", "egress_allow": ["a.example.com"]}
    e = "/machine/m/egress"
    return script(
        "policies of a machine and of the account, what was tried, and secrets",
        [
            M,
            call("machine.egress", "show", gives, "m"),
            call("machine.egress", "set", gives, "m", policy="list"),
            call("machine.egress", "allow", gives, "m", rules=["a.example.com", "b.example.com"]),
            call("machine.egress", "deny", gives, "m", rules=["b.example.com"]),
            call("machine.egress", "log", [{"number": 3, "verdict": "refused"}, {"number": 2}], "m"),
            call("egress", "show", gives),
            call("egress", "set", gives, policy="list", allow=["a.example.com"]),
            call("secrets", "set", {"name": "KEY"}, name="KEY", value="v", hosts=["a.example.com"], header="Authorization: Bearer {}", places=["body"]),
            call("secrets", "list", [{"placeholder": "efsec"}]),
            call("secrets", "delete", None, name="KEY"),
        ],
        [
            told(ask("GET", e), policy),
            told(post(e, {"egress": "list"}), policy),
            told(post(e, {"allow": ["a.example.com", "b.example.com"]}), policy),
            told(post(e, {"deny": ["b.example.com"]}), policy),
            told(ask("GET", f"{e}/log", query={"limit": "200"}), api.EgressLog(attempts=[attempt], next=3)),
            told(ask("GET", f"{e}/log", query={"limit": "200", "before": "3"}), api.EgressLog(attempts=[api.EgressAttempt(**{**plain(attempt), "number": 2})], next=None)),
            told(ask("GET", "/egress"), policy),
            told(post("/egress", {"egress": "list", "egress_allow": ["a.example.com"]}, "PUT"), policy),
            told(post("/secrets/KEY", {"value": "v", "hosts": ["a.example.com"], "header": "Authorization: Bearer {}", "places": ["body"]}, "PUT"), secret),
            told(ask("GET", "/secrets"), api.SecretList(secrets=[secret])),
            told(ask("DELETE", "/secrets/KEY"), api.Deleted(deleted=True)),
        ],
    )  # fmt: skip


@transcript
def events_to_be_told() -> dict[str, Json]:
    hook = api.Webhook(id="w1", url="https://example.org/hook", events=["machine.broken"], created_at="2030")
    delivery = api.Delivery(id="d1", webhook="w1", event="machine.broken", body="{}", created_at="2030", attempts=9, error="it refused")
    return script(
        "webhooks",
        [
            call("webhooks", "add", {"id": "w1", "secret": "whsec_x"}, url="https://example.org/hook", events=["machine.broken"]),
            call("webhooks", "list", [{"id": "w1"}]),
            call("webhooks", "test", None, id="w1"),
            call("webhooks", "dead", [{"id": "d1"}]),
            call("webhooks", "given_up", {"deliveries": [{"id": "d1"}], "let_go": 4}),
            call("webhooks", "retry", 1, id="d1"),
            call("webhooks", "delete", None, id="w1"),
        ],
        [
            told(
                post("/webhooks", {"url": "https://example.org/hook", "events": ["machine.broken"]}),
                api.WebhookCreated(**plain(hook), secret="whsec_x"),
            ),
            told(ask("GET", "/webhooks"), api.WebhookList(webhooks=[hook])),
            told(post("/webhooks/w1/test", {}), api.WebhookTested(delivered=True)),
            told(ask("GET", "/webhooks/dead"), api.DeliveryList(deliveries=[delivery])),
            told(ask("GET", "/webhooks/dead"), api.DeliveryList(deliveries=[delivery], let_go=4)),
            told(post("/webhooks/dead/retry", {"id": "d1"}), api.Retried(deliveries=1)),
            told(ask("DELETE", "/webhooks/w1"), api.Deleted(deleted=True)),
        ],
    )


def _log() -> list[AuditEntry]:
    head = AuditHead(number=0, hash="0" * 64)
    found: list[AuditEntry] = []
    for i, detail in enumerate(({"n": 1, "text": 'é\U0001f40d/\\"\u007f'}, {"nested": {"b": [1.5, 1e21, -0.0, True, None], "a": 1}}, {})):
        sealed = seal(Seen(time=f"2030-01-01T00:00:0{i}.000Z", action="machine.create", account="a1", machine="m", detail=detail), head)
        found.append(sealed)
        head = AuditHead(number=sealed.number, hash=sealed.hash)
    return found


@transcript
def the_audit_log() -> dict[str, Json]:
    log = _log()
    head = AuditHead(number=3, hash=log[-1].hash)
    one = {"after": "0", "limit": "1"}
    most = {"after": "0", "limit": "500"}

    def page(*entries: AuditEntry, next: int | None = None) -> api.AuditPage:
        return api.AuditPage(entries=[*entries], next=next, head=head)

    def asked(query: dict[str, str], answer: api.AuditPage) -> dict[str, Json]:
        found = told(ask("GET", "/audit", query=query), answer)
        found["answer"]["body"]["entries"] = [plain_seen(entry) for entry in answer.entries]
        return found

    return script(
        "read in pages, and checked here, hash by hash, with numbers and letters that are easily spelled otherwise",
        [
            call("audit", "entries", [{"number": 1}, {"number": 2}, {"number": 3}], machine="m", action="machine"),
            call("audit", "head", {"number": 3, "hash": head.hash}),
            call("audit", "verify", {"count": 3, "head": {"number": 3, "hash": head.hash}}),
        ],
        [
            asked({**most, "machine": "m", "action": "machine"}, page(log[0], log[1], next=2)),
            asked({**most, "after": "2", "machine": "m", "action": "machine"}, page(log[2])),
            asked({**one, "last": "true"}, page(log[2])),
            asked(one, page(log[0], next=1)),
            asked({**one, "last": "true"}, page(log[2])),
            asked(most, page(*log)),
        ],
    )
