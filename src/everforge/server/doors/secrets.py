"""Secrets that machines use and never see."""

from __future__ import annotations

from everforge.store.egress import SecretRecord
from everforge.wire import api
from everforge.wire.errors import DiskFull, SecretNotFound, TooMany

from ..calls import Call
from ..routes import Routes
from ..times import to_wire

routes = Routes("secrets")


@routes.add("GET", "/v1/secrets", scope="read")
async def list_secrets(call: Call) -> api.SecretList:
    """The account's secrets, without their values."""
    return api.SecretList(secrets=[_shown(record) for record in await call.service.egress.secrets.list(call.identity.account)])


@routes.add(
    "PUT", "/v1/secrets/{secret}", action="secret.set", scope="manage", errors=(TooMany, DiskFull),
    example={"value": "a value that nobody sees", "hosts": ["api.example.com"], "header": "Authorization: Bearer {}"},
)  # fmt: skip
async def set_secret(call: Call, body: api.NewSecret) -> api.Secret:
    """A new secret, or another value for one. Machines have a placeholder in the environment variable of its name; the value is put into requests to
    its hosts, over TLS alone."""
    record = await call.service.egress.secrets.set(
        call.identity.account, call.path("secret"), body.value, body.hosts, body.header or "", body.places or ()
    )
    call.notes["hosts"] = list(record.hosts)
    await call.machines.tell_surroundings()
    return _shown(record)


@routes.add("DELETE", "/v1/secrets/{secret}", action="secret.delete", scope="manage", errors=(SecretNotFound, DiskFull))
async def delete_secret(call: Call) -> api.Deleted:
    """From now on its placeholder is only a placeholder."""
    await call.service.egress.secrets.delete(call.identity.account, call.path("secret"))
    return api.Deleted(deleted=True)


def _shown(r: SecretRecord) -> api.Secret:
    return api.Secret(
        name=r.name, placeholder=r.placeholder, hosts=list(r.hosts), header=r.header or None, places=list(r.places),
        created_at=to_wire(r.created_at), changed_at=to_wire(r.changed_at),
    )  # fmt: skip
