"""Real processes on loopback, and taps among them: whatever befalls a tap, the others do not notice."""

from __future__ import annotations

from tests.processes.harness import Fleet, Verdict


def test_a_tap_sees_everything_once_and_takes_nothing(fleet: Fleet) -> None:
    tap = fleet.receiver("tap", tap=1)
    fleet.await_members([tap], 0)
    receivers = fleet.start_receivers("r0", "r1")
    for name in ("a", "b"):
        fleet.sender(name, count=3000, rate=2000)
    fleet.await_senders()
    fleet.verdict(receivers).assert_all_once()
    fleet.await_started(6000, [tap])
    fleet.verdict([tap]).assert_all_once()
    assert order_of(fleet.verdict([tap])) == {name: list(range(3000)) for name in ("a", "b")}


def test_taps_that_are_killed_or_stopped_change_nothing(fleet: Fleet) -> None:
    killed, stopped, sound = (fleet.receiver(name, tap=1) for name in ("killed", "stopped", "sound"))
    fleet.await_members([killed, stopped, sound], 0)
    receivers = fleet.start_receivers("r0", "r1")
    sender = fleet.sender("a", rate=1000)
    fleet.await_more(200, killed, stopped, sound)
    killed.kill()
    stopped.stop()
    # Longer than it takes to notice the death of a receiver.
    fleet.await_more(2000, *receivers)
    stopped.resume()
    fleet.await_more(500, *receivers)
    fleet.finish()
    fleet.verdict(receivers).assert_all_once()
    assert {worker.read().members for worker in receivers} == {2}
    fleet.await_started(fleet_sent(fleet), [sound])
    fleet.verdict([sound]).assert_all_once()
    again = fleet.verdict([stopped, killed])
    assert not again.invented
    for tap in (stopped, killed):
        fleet.verdict([tap]).assert_repeats_only({})
    assert sender.undone == 0


def fleet_sent(fleet: Fleet) -> int:
    return len(fleet.verdict([]).sent)


def order_of(verdict: Verdict) -> dict[str, list[int]]:
    """The numbers of each sender's messages, as they were shown."""
    found: dict[str, list[int]] = {}
    for handling in sorted(verdict.handled, key=lambda handling: handling.start):
        name, number = handling.message.split("/")
        found.setdefault(name, []).append(int(number))
    return found
