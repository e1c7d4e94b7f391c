"""What /metrics tells, in Prometheus' words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

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
        self.streams = Gauge("everforge_streams", "WebSockets and followed tapes that are open.", registry=self.registry)
        self._machines = Gauge("everforge_machines", "Machines by state.", ["state"], registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def watch_streams(self, count: Callable[[], int]) -> None:
        self.streams.set_function(count)

    def text(self, machines: Mapping[str, int]) -> bytes:
        self._machines.clear()
        for state, count in machines.items():
            self._machines.labels(state).set(count)
        return generate_latest(self.registry)
