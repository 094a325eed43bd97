"""What a driver sees of a machine: where datagrams go, and that the protocol is one that classes can be held to."""

from __future__ import annotations

import inspect

from rvq.core.machine import Machine, Route


def test_a_label_has_two_routes_and_the_bus_one_more() -> None:
    assert {route.value for route in Route} == {"data", "control", "about"}


def test_a_route_is_never_taken_for_an_address() -> None:
    addresses = {("127.0.0.1", 7400), "r1", "data", "control"}
    assert not any(route in addresses for route in Route)


def test_a_driver_needs_five_calls_and_no_more() -> None:
    calls = {name for name, _ in inspect.getmembers(Machine, inspect.isfunction) if not name.startswith("_")}
    assert calls == {"receive", "wake", "next_deadline", "take_outgoing", "check_invariants"}


def test_time_is_handed_to_every_call_that_can_change_a_machine() -> None:
    for call in (Machine.receive, Machine.wake):
        assert list(inspect.signature(call).parameters)[:2] == ["self", "now"]
