"""What /metrics tells, in Prometheus' words."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from everforge.audit.recorder import Recorder
from everforge.webhooks.service import Webhooks

from .streams import Streams

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter("everforge_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry)
        self._seconds = Histogram(
            "everforge_http_request_seconds",
            "From a request's headers to the headers of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._streams = self._gauge("everforge_streams", "WebSockets and followed tapes that are open.")
        self._audit_queue = self._gauge("everforge_audit_queue", "Entries of the audit log that wait to be written.")
        self._audit_written = self._gauge("everforge_audit_entries_written", "Entries of the audit log written since the start.")
        self._audit_dropped = self._gauge("everforge_audit_entries_dropped", "Entries that there was no room for since the start.")
        self._left_out = self._gauge("everforge_webhook_events_left_out", "Events that found no place in a webhook's queue since the start.")
        self._machine_events = self._counter("everforge_machine_events", "What happened to machines.", "event")
        self._limit_hits = self._counter("everforge_limit_hits", "Limits that somebody met.", "limit")
        self._auth_failures = self._counter("everforge_auth_failures", "Requests refused for who asked.", "reason")
        self._egress_attempts = self._counter("everforge_egress_attempts", "Tries of machines to reach something outside.", "verdict")
        self._deliveries = self._counter(
            "everforge_webhook_deliveries", "Tries to deliver to webhooks; dead: given up; let_go: dead, and forgotten for newer ones.", "outcome"
        )
        self._machines = Gauge("everforge_machines", "Machines by state.", ["state"], registry=self.registry)

    def _gauge(self, name: str, help: str) -> Gauge:
        return Gauge(name, help, registry=self.registry)

    def _counter(self, name: str, help: str, label: str) -> Counter:
        return Counter(name, help, [label], registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def machine_event(self, event: str) -> None:
        self._machine_events.labels(event).inc()

    def limit_hit(self, limit: str) -> None:
        self._limit_hits.labels(limit).inc()

    def auth_failed(self, reason: str) -> None:
        self._auth_failures.labels(reason).inc()

    def egress(self, verdict: str) -> None:
        self._egress_attempts.labels(verdict).inc()

    def delivered(self, outcome: str) -> None:
        self._deliveries.labels(outcome).inc()

    def watch(self, streams: Streams, recorder: Recorder, webhooks: Webhooks) -> None:
        """What others count themselves."""
        self._streams.set_function(lambda: streams.count)
        self._audit_queue.set_function(lambda: recorder.waiting)
        self._audit_written.set_function(lambda: recorder.written)
        self._audit_dropped.set_function(lambda: recorder.dropped)
        self._left_out.set_function(lambda: webhooks.left_out)
        webhooks.postmaster.told = self.delivered

    def text(self, machines: Mapping[str, int]) -> bytes:
        self._machines.clear()
        for state, count in machines.items():
            self._machines.labels(state).set(count)
        return generate_latest(self.registry)
