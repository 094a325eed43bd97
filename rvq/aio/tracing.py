"""Trace context in headers: from the span that sends to the one that handles. Owns the spans and the two headers.

Only where the program itself uses OpenTelemetry: whoever has no tracer provider by the time that a sender or consumer
is opened has no spans, and pays nothing. A producer span is made, and its context sent along, if a span is recording
when something is sent; a consumer span, if a message brings a context.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rvq.message import Message

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

PARENT, STATE = "traceparent", "tracestate"
"""The headers, as W3C's Trace Context has them."""

Headers = dict[str, Any] | None


def in_use() -> Tracing | None:
    """Spans, if this program uses OpenTelemetry; None if not."""
    trace = sys.modules.get("opentelemetry.trace")  # imported by nobody, it cannot have been set up
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return Tracing()


def carried(headers: Headers) -> Headers:
    """The context alone, to go along with what a message leads to; None if there is none."""
    if not headers or PARENT not in headers:
        return None
    return {name: headers[name] for name in (PARENT, STATE) if name in headers}


class Tracing:
    """The spans of one sender or consumer."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._tracer: Tracer = trace.get_tracer("rvq")
        self._propagator = TraceContextTextMapPropagator()

    @property
    def is_recording(self) -> bool:
        """Is somebody interested in what is sent now?"""
        return self._trace.get_current_span().is_recording()

    @contextmanager
    def sending(self, label: str, headers: Headers, count: int | None = None) -> Iterator[Headers]:
        """A producer span, and the headers with its context. Headers that have one already, keep it."""
        facts: dict[str, Any] = {
            "messaging.system": "rvq",
            "messaging.operation.type": "send",
            "messaging.destination.name": label,
        }
        if count is not None:
            facts["messaging.batch.message_count"] = count
        span = self._tracer.start_as_current_span(f"send {label}", kind=self._trace.SpanKind.PRODUCER, attributes=facts)
        with span:
            context: dict[str, str] = {}
            self._propagator.inject(context)
            yield {**context, **(headers or {})}

    def handling(self, handler: Callable[[Message], Any], *, is_async: bool) -> Callable[[Message], Any]:
        """The same handler, in a span of its own for each message that brings a context."""

        async def handle_async(message: Message) -> Any:
            context = self._context_of(message)
            if context is None:
                return await handler(message)
            with self._handling(message, context):
                return await handler(message)

        def handle(message: Message) -> Any:
            context = self._context_of(message)
            if context is None:
                return handler(message)
            with self._handling(message, context):
                return handler(message)

        return handle_async if is_async else handle

    @contextmanager
    def _handling(self, message: Message, context: Context) -> Iterator[None]:
        facts: dict[str, Any] = {
            "messaging.system": "rvq",
            "messaging.operation.type": "process",
            "messaging.destination.name": message.label,
            "messaging.consumer.group.name": message.group or "",
            "messaging.message.id": message.id,
            "rvq.attempt": message.attempt,
        }
        name, kind = f"process {message.label}", self._trace.SpanKind.CONSUMER
        with self._tracer.start_as_current_span(name, context=context, kind=kind, attributes=facts):
            yield

    def _context_of(self, message: Message) -> Context | None:
        """Where the message comes from. Headers are a stranger's words: what is no context is none."""
        headers = carried(message.headers)
        if headers is None:
            return None
        texts = {name: value for name, value in headers.items() if isinstance(value, str)}
        context = self._propagator.extract(texts)
        return context if self._trace.get_current_span(context).get_span_context().is_valid else None
