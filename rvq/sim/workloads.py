"""Random worlds. Owns what a seed can mean: how many take part, what they do, and what befalls them.

Every world has two halves, as in TigerBeetle's simulator: first faults, in which nothing wrong may happen, then it is
healed and everything must be done. In some worlds one receiver stays broken for good: the others must be done without
it. Each seed uses only a few kinds of faults, because a world with all of them never gets far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from rvq.core.recorder import JOURNAL
from rvq.sim.checkers import Verdict
from rvq.sim.machines import Build, StartedMessage
from rvq.sim.network import Link
from rvq.sim.process import Handler, Job, KillsProcess, Process, ReceiverProcess
from rvq.sim.recording import RecorderProcess
from rvq.sim.world import SETTLE_S_MAX, World
from rvq.timings import Timings
from rvq.wire.frames import FrameType, OrderKind

LABEL = "work"
QUIET_S = 1.0
"""How long a world goes on after everything is done: a repeat could still come."""

ORPHAN_S = 8.0
"""The same if a sender died: long enough for its stream to be orphaned and given up."""

RECEIVERS_MAX = 12
"""Joins beyond this are left out: they would make a world slow and not more interesting."""

BURST_JOINERS_MAX = 20

LASTING_PART = 0.3
"""The part of worlds in which something stays broken."""

WORK_PART = 0.5
"""The part of worlds whose messages have times, urgency, poison or a number of attempts."""

POISON_S = 60.0
"""Longer for each poisonous message: a group of one that is killed is taken over only after 5.5 s, each time."""

SLOW_S = 0.5, 3.0
"""How long slow handlers take: from a part of a lease to several."""

POISON_AT = 7
"""The number of the first poisonous message of each sender."""

LATER_PART = 0.25
"""The part of worlds that also have faults of the kinds that were added later."""


HOLD_PART = 0.2
"""The part of worlds whose senders give up a group that nobody came back to; there everybody vanishes now and then."""
ORDERED_PART = 0.2
"""The part of worlds in which somebody gives orders to receivers."""

RECORDED_PART = 0.15
"""The part of worlds in which there are recorders."""

RECORDERS_MAX = 5


class HandlerFailed(Exception):
    """Raised by a random world's handlers now and then, on purpose."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed means. Faults are (time, kind), as named in `FAULTS` and `LATER`."""

    senders: int
    receivers: int
    groups: int
    weights: tuple[int, ...]
    messages: int
    burst: int
    keys: int
    handling_s: float
    slow_handlers: float
    """The part of messages whose handling takes longer than a lease."""
    failures: float
    concurrency: int
    faults_s: float
    faults: tuple[tuple[float, str], ...]
    link: Link
    buffer_bytes: int
    body_bytes: int
    close: bool
    lasting: str | None = None
    """What stays broken after the world is healed, as named in `LASTING`."""
    attempts: int | None = None
    """How often a message is tried before it is given up."""
    poison: int = 0
    """So many of each sender's messages kill whoever handles them."""
    later: float = 0.0
    """The part of messages that are due some time after they are sent."""
    expiring: float = 0.0
    """The part of messages without a key that have a time to live."""
    urgent: float = 0.0
    """The part of messages without a key that are urgent."""
    hand_over: bool = False
    """Do receivers give work to idle ones?"""
    hold: float | None = None
    """Seconds after which senders go on without a group of which nobody is left."""
    recorders: int = 0
    journals: int = 1
    """The groups that these are of."""
    sync_s: float = 0.0
    recorder_faults: tuple[tuple[float, str], ...] = ()
    """As the other faults, named in `RECORDER_FAULTS`."""
    orders: tuple[tuple[float, str], ...] = ()
    """As the other faults, named in `ORDERS`."""

    @property
    def work_s(self) -> float:
        """About how long all messages take one after the other: in the end only one receiver may be left."""
        each = self.handling_s + self.slow_handlers * sum(SLOW_S) / 2
        return self.senders * self.messages * each / (1 - self.failures)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} at {when:.2f}" for when, kind in self.faults) or "none"
        keys = f"{self.keys} keys" if self.keys else "no keys"
        return (
            f"{self.senders} senders x {self.messages} messages ({keys}, bursts of {self.burst}), {self.receivers} "
            f"receivers in {self.groups} groups, handling {self.handling_s * 1000:.1f} ms x {self.concurrency}, "
            f"{self.slow_handlers:.0%} slow, {self.failures:.0%} failing, {self.attempts or 'endless'} attempts, "
            f"{self.poison} poison, {self.later:.0%} later, {self.expiring:.0%} expiring, {self.urgent:.0%} urgent, "
            f"{'' if self.hand_over else 'no '}handing over, "
            f"held {'for ever' if self.hold is None else f'for {self.hold:g} s'}; "
            f"{self.link}; faults: {kinds}"
            f"{f'; for good: {self.lasting}' if self.lasting else ''}{self._recording()}{self._ordering()}"
        )

    def _ordering(self) -> str:
        return f"; orders: {', '.join(f'{kind} at {when:.2f}' for when, kind in self.orders)}" if self.orders else ""

    def _recording(self) -> str:
        if not self.recorders:
            return ""
        kinds = ", ".join(f"{kind} at {when:.2f}" for when, kind in self.recorder_faults) or "none"
        what = f"{self.recorders} recorders in {self.journals} groups, syncing in {self.sync_s * 1000:.0f} ms"
        return f"; {what}; their faults: {kinds}"


def make_plan(random: Random) -> Plan:
    """A plan from chance alone."""
    choose = random.choice
    faults_s = random.uniform(2.0, 8.0)
    kinds = random.sample(list(FAULTS), random.randint(1, 4))
    begin = choose((0.0, 0.5, 1.5))
    times = sorted(random.uniform(begin, faults_s) for _ in range(random.randint(1, 7)))
    receivers = random.randint(2, 6)
    return Plan(
        senders=choose((1, 1, 2, 3)),
        receivers=receivers,
        groups=choose((1, 1, 1, 2)),
        weights=tuple(choose((1, 1, 1, 2, 3)) for _ in range(receivers)),
        messages=random.randint(20, 200),
        burst=choose((1, 1, 3, 20)),
        keys=choose((0, 0, 1, 3, 20)),
        handling_s=choose((0.0, 0.001, 0.01, 0.03)),
        slow_handlers=choose((0.0, 0.0, 0.0, 0.02)),
        failures=choose((0.0, 0.0, 0.05)),
        concurrency=choose((1, 1, 2, 5)),
        faults_s=faults_s,
        faults=tuple((when, choose(kinds)) for when in times),
        link=_random_link(random),
        buffer_bytes=choose((64 * 1024, 1024 * 1024, 1024 * 1024)),
        body_bytes=choose((0, 0, 200, 3000)),
        close=random.random() < 0.2,
    )


def _with_later_kinds(plan: Plan, random: Random) -> Plan:
    """What came later has chance of its own, so that older seeds still mean what they meant when they found a bug."""
    lasting = random.choice(list(LASTING)) if random.random() < LASTING_PART else None
    faults = plan.faults
    if random.random() < LATER_PART:
        later = [(random.uniform(0.5, plan.faults_s), random.choice(list(LATER))) for _ in range(random.randint(1, 3))]
        faults = tuple(sorted((*faults, *later)))
    return replace(plan, lasting=lasting, faults=faults)


def _with_work_kinds(plan: Plan, random: Random) -> Plan:
    """What messages can be beside their bodies, and what becomes of those that fail. By chance of its own, as above."""
    if random.random() >= WORK_PART:
        return plan
    attempts = random.choice((None, 1, 2, 3))
    hand_over = random.random() < 0.6
    if hand_over:  # much at once, without keys: so that there is something to give
        handling_s = random.choice((0.02, 0.1))
        plan = replace(plan, keys=0, burst=random.choice((20, plan.messages)), handling_s=handling_s)
    return replace(
        plan,
        attempts=attempts,
        failures=random.choice((plan.failures, 0.1, 0.4)),
        poison=random.choice((0, 0, 1)) if attempts else 0,
        later=random.choice((0.0, 0.1, 0.9)),
        expiring=random.choice((0.0, 0.1, 0.5)),
        urgent=random.choice((0.0, 0.05, 0.3)),
        hand_over=hand_over,
    )


def _with_hold(plan: Plan, random: Random) -> Plan:
    """Groups that are given up. By chance of its own, as above."""
    if random.random() >= HOLD_PART:
        return plan
    vanishing = [(random.uniform(0.5, plan.faults_s), random.choice(list(VANISHING))) for _ in range(2)]
    return replace(plan, hold=random.choice((0.0, 0.3, 1.0, 3.0)), faults=tuple(sorted((*plan.faults, *vanishing))))


def _with_recorders(plan: Plan, random: Random) -> Plan:
    """By chance of its own, as above."""
    if random.random() >= RECORDED_PART:
        return plan
    recorders = random.choice((1, 2, 2, 3))
    kinds = random.choices(list(RECORDER_FAULTS), k=random.choice((0, 1, 2, 3)))
    return replace(
        plan,
        recorders=recorders,
        journals=random.choice((1, 1, 1, min(2, recorders))),
        sync_s=random.choice((0.001, 0.02, 0.2)),
        recorder_faults=tuple(sorted((random.uniform(0.5, plan.faults_s), kind) for kind in kinds)),
    )


def _with_orders(plan: Plan, random: Random) -> Plan:
    """By chance of its own, as above."""
    if random.random() >= ORDERED_PART:
        return plan
    kinds = random.choices(list(ORDERS), k=random.choice((1, 2, 4)))
    return replace(plan, orders=tuple(sorted((random.uniform(0.3, plan.faults_s), kind) for kind in kinds)))


def _times(plan: Plan, random: Random, job: Job) -> Job:
    """Some wait, some expire, some overtake."""
    if random.random() < plan.later:
        job = replace(job, delay=random.choice((random.uniform(0.0, 0.3), random.uniform(0.3, 4.0))))
    if job.key is None and random.random() < plan.expiring:
        job = replace(job, ttl=random.choice((random.uniform(0.0, 0.1), random.uniform(0.1, 8.0))))
    if job.key is None and job.delay is None and random.random() < plan.urgent:
        job = replace(job, urgent=True)
    return job


def _random_link(random: Random) -> Link:
    """The network of the first half: often fine, sometimes bad in one way, sometimes in all."""
    bad = random.random()
    if bad < 0.4:
        return Link()
    loss, duplicate, reorder = (random.choice((0.0, 0.01, 0.1, 0.25)) for _ in range(3))
    return Link(
        delay=random.choice((0.0002, 0.002, 0.02)),
        jitter=random.choice((0.0003, 0.003, 0.03)),
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        late=random.choice((0.01, 0.1, 1.0)),
    )


def build_world(
    seed: int,
    *,
    build: Build | None = None,
    timings: Timings | None = None,
    verbose: int = 0,
    out: Callable[[str], object] | None = None,
) -> tuple[World, Plan]:
    """The world of a seed, with its faults planned but nothing run yet."""
    world = World(seed, build=build, timings=timings, verbose=verbose, out=out)
    plan = _with_later_kinds(make_plan(world.random), Random(f"later kinds {seed}"))
    plan = _with_work_kinds(plan, Random(f"work kinds {seed}"))
    plan = _with_hold(plan, Random(f"hold {seed}"))
    plan = _with_recorders(plan, Random(f"recorders {seed}"))
    plan = _with_orders(plan, Random(f"orders {seed}"))
    world.story.tell("plan", str(plan))
    if world.bus is not None:
        world.attacker(LABEL)
    if build is not None and build.flooded:
        world.flooder(LABEL, plan.faults_s)
    world.disturb(plan.link)
    handler = _handler(world.random, plan)
    for index in range(plan.receivers):
        world.after(
            world.random.choice((0.0, world.random.uniform(0.0, 1.0))),
            partial(_add_receiver, world, plan, handler, index),
        )
    rate = plan.messages / plan.faults_s
    for index in range(plan.senders):
        world.after(
            world.random.uniform(0.0, 1.0) if index else 0.0,
            lambda: world.sender(
                LABEL,
                bodies=_bodies(world.random, plan),
                rate=rate,
                burst=plan.burst,
                keys=plan.keys,
                times=partial(_times, plan) if plan.later or plan.expiring or plan.urgent else None,
                close=plan.close,
                options=_sender_options(plan),
            ),
        )
    for index in range(plan.recorders):
        world.after(world.random.choice((0.0, world.random.random())), partial(_add_recorder, world, plan, index))
    for when, kind in (*plan.faults, *plan.recorder_faults):
        world.at(when, partial((FAULTS | LATER | VANISHING | RECORDER_FAULTS)[kind], Scene(world, plan, handler)))
    luck = Random(f"{seed} orders")
    for when, kind in plan.orders:
        world.at(when, partial(ORDERS[kind], Scene(world, plan, handler), luck))
    return world, plan


def _sender_options(plan: Plan) -> dict[str, Any]:
    options: dict[str, Any] = {"frame_bytes": 2000, "train_frames": 8} if plan.body_bytes else {}
    return options if plan.hold is None else {**options, "hold": plan.hold}


def run_seed(
    seed: int, *, build: Build | None = None, verbose: int = 0, out: Callable[[str], object] | None = None
) -> Verdict:
    """Run the world of a seed to its end and judge it."""
    world, plan = build_world(seed, build=build, verbose=verbose, out=out)
    world.run(until=plan.faults_s)
    world.run_planned()
    world.heal()
    scene = Scene(world, plan, _handler(world.random, plan))
    broken = LASTING[plan.lasting](scene) if plan.lasting else None
    _people(scene, broken)
    if plan.orders:
        _resume_all(scene)
    world.settle(SETTLE_S_MAX + plan.work_s + POISON_S * plan.poison)
    orphans = any(not sender.alive and sender.machine.undone for sender in world.senders)
    world.run(until=world.now + (ORPHAN_S if orphans else QUIET_S))
    return world.verdict()


def _people(scene: Scene, broken: Process | None) -> None:
    """Every group that was ever there has someone sound again: otherwise its messages could never be done."""
    world, plan = scene.world, scene.plan
    for group in sorted({receiver.group for receiver in world.receivers} or {_group(plan, 0)}):
        if all(receiver.leaving or receiver is broken for receiver in world.live_receivers(LABEL, group)):
            world.receiver(
                LABEL,
                group=group,
                handler=scene.handler,
                concurrency=plan.concurrency,
                attempts=plan.attempts,
                options={"hand_over": plan.hand_over},
            )
    for journal in world.history.journals:
        if all(recorder.leaving for recorder in world.live_recorders(journal)):
            world.recorder(LABEL, group=journal, sync_s=plan.sync_s)


def _add_recorder(world: World, plan: Plan, index: int) -> RecorderProcess:
    group = (JOURNAL, "copy")[index % plan.journals]
    return world.recorder(LABEL, group=group, sync_s=plan.sync_s, buffer_bytes=plan.buffer_bytes)


def _add_receiver(world: World, plan: Plan, handler: Handler, index: int) -> ReceiverProcess:
    return world.receiver(
        LABEL,
        group=_group(plan, index),
        weight=plan.weights[index % plan.receivers],
        handler=handler,
        concurrency=plan.concurrency,
        attempts=plan.attempts,
        buffer_bytes=plan.buffer_bytes,
        options={"hand_over": plan.hand_over},
    )


def _group(plan: Plan, index: int) -> str:
    return ("default", "second")[index % plan.groups]


def _bodies(random: Random, plan: Plan) -> list[object]:
    if not plan.body_bytes:
        return [{"n": n} for n in range(plan.messages)]
    return [b"%d:" % n + bytes(random.randrange(2 * plan.body_bytes)) for n in range(plan.messages)]


def _handler(random: Random, plan: Plan) -> Handler:
    def handle(message: StartedMessage) -> float:
        if plan.poison and _number(message.body) in range(POISON_AT, POISON_AT + plan.poison):
            raise KillsProcess
        if plan.failures and random.random() < plan.failures:
            raise HandlerFailed("on purpose")
        if plan.slow_handlers and random.random() < plan.slow_handlers:
            return random.uniform(*SLOW_S)
        return random.expovariate(1.0) * plan.handling_s

    return handle


def _number(body: Any) -> int:
    """The place of a message among its sender's."""
    return int(body["n"]) if isinstance(body, dict) else int(body.partition(b":")[0])


# --- faults -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a fault happens. Victims are chosen when it does, among those that are alive then."""

    world: World
    plan: Plan
    handler: Handler

    @property
    def random(self) -> Random:
        return self.world.random

    def receiver(self) -> ReceiverProcess | None:
        live = self.world.live_receivers(LABEL)
        return self.random.choice(live) if live else None

    def sender(self) -> Process | None:
        live = self.world.live_senders(LABEL)
        return self.random.choice(live) if live else None

    def recorder(self) -> RecorderProcess | None:
        live = self.world.live_recorders()
        return self.random.choice(live) if live else None

    def everyone_but(self, *processes: Process) -> list[Process]:
        return [process for process in self.world.processes if process.alive and process not in processes]

    def duration(self) -> float:
        """Short, about as long as an expiry or a lease, or long: the interesting ones are in the middle."""
        return self.random.choice(
            (self.random.uniform(0.05, 0.9), self.random.uniform(0.9, 1.3), self.random.uniform(1.3, 4.0))
        )

    def join(self) -> None:
        if len(self.world.live_receivers(LABEL)) < RECEIVERS_MAX:
            _add_receiver(self.world, self.plan, self.handler, self.random.randrange(self.plan.receivers))


def _crash_receiver(scene: Scene) -> None:
    if receiver := scene.receiver():
        receiver.crash()


def _restart_receiver(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.restart(receiver, after=scene.random.choice((0.0, scene.duration())))


def _receiver_leaves(scene: Scene) -> None:
    if receiver := scene.receiver():
        receiver.leave()


def _receiver_joins(scene: Scene) -> None:
    scene.join()


def _one_dies_while_two_join(scene: Scene) -> None:
    _crash_receiver(scene)
    scene.join()
    scene.join()


def _many_join(scene: Scene) -> None:
    for _ in range(scene.random.randint(3, BURST_JOINERS_MAX)):
        scene.world.after(scene.random.random(), scene.join)


def _all_leave_and_one_comes(scene: Scene) -> None:
    pause = scene.random.choice((0.0, 0.3))
    for index, receiver in enumerate(scene.world.live_receivers(LABEL)):
        scene.world.after(index * pause, receiver.leave)
    scene.world.after(scene.duration(), scene.join)


def _all_die_and_new_ones_come(scene: Scene) -> None:
    for receiver in scene.world.live_receivers(LABEL):
        receiver.crash()
    for _ in range(scene.random.randint(1, 3)):
        scene.world.after(scene.duration(), scene.join)


def _pause_receiver(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.pause(receiver, scene.duration())


def _pause_receiver_for_ten_seconds(scene: Scene) -> None:
    # Heal would end it sooner: it is planned so late that the world goes on without it until it resumes by itself.
    if receiver := scene.receiver():
        scene.world.pause(receiver, 10.0)


def _keeper_naps(scene: Scene) -> None:
    if live := scene.world.live_receivers(LABEL):
        scene.world.pause(live[0], scene.random.uniform(0.9, 1.3))


def _keeper_dies_half_heard(scene: Scene) -> None:
    """The keeper writes a table that only some hear, then dies."""
    live = scene.world.live_receivers(LABEL)
    if len(live) >= 3:
        scene.world.cut(live[0], scene.random.sample(live[1:], len(live) // 2))
        scene.join()
        scene.world.after(scene.random.uniform(0.05, 1.5), live[0].crash)


def _pause_sender(scene: Scene) -> None:
    if sender := scene.sender():
        scene.world.pause(sender, scene.random.choice((scene.duration(), 4.0)))


def _crash_sender(scene: Scene) -> None:
    if sender := scene.sender():
        sender.crash()


def _restart_sender(scene: Scene) -> None:
    if sender := scene.sender():
        scene.world.restart(sender, after=scene.random.choice((0.0, scene.duration())))


def _deaf(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.cut(scene.everyone_but(receiver), receiver, scene.duration())


def _mute(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.cut(receiver, scene.everyone_but(receiver), scene.duration())


def _cable_out(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.partition([receiver], scene.everyone_but(receiver), for_s=scene.duration())


def _deaf_to_a_sender(scene: Scene) -> None:
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        scene.world.cut(sender, receiver, scene.duration())


def _unheard_by_a_sender(scene: Scene) -> None:
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        scene.world.cut(receiver, sender, scene.duration())


def _strangers(scene: Scene) -> None:
    """Two that hear everyone else, but not each other."""
    live = scene.world.live_receivers(LABEL)
    if len(live) >= 2:
        one, other = scene.random.sample(live, 2)
        scene.world.partition([one], [other], for_s=scene.duration())


def _halves(scene: Scene) -> None:
    everyone = scene.everyone_but()
    if len(everyone) >= 2:
        scene.random.shuffle(everyone)
        middle = scene.random.randrange(1, len(everyone))
        scene.world.partition(everyone[:middle], everyone[middle:], for_s=scene.duration())


def _clogged(scene: Scene) -> None:
    """One process's datagrams, or those to it, come late and all at once."""
    victim = scene.random.choice((scene.receiver, scene.sender))()
    if victim:
        others = scene.everyone_but(victim)
        there, here = scene.random.sample(([victim], others), 2)
        scene.world.clog(there, here, scene.duration())


def _storm(scene: Scene) -> None:
    """Every link bad for a while."""
    world = scene.world
    before = world.network.link
    world.disturb(Link(delay=0.001, jitter=0.02, loss=0.4, duplicate=0.2, reorder=0.3, late=0.3))
    world.after(scene.duration(), lambda: world.disturb(before))


def _bad_cable(scene: Scene) -> None:
    """One process's links lose half of everything until the world is healed."""
    if receiver := scene.receiver():
        others = scene.everyone_but(receiver)
        link = Link(loss=0.5, reorder=0.1)
        if scene.random.random() < 0.7:
            scene.world.disturb(link, others, receiver)
        if scene.random.random() < 0.7:
            scene.world.disturb(link, receiver, others)


def _last_acks_reach_only_the_sender(scene: Scene) -> None:
    """A receiver that only senders hear goes on a little, then dies."""
    if receiver := scene.receiver():
        others = [r for r in scene.world.live_receivers(LABEL) if r is not receiver]
        scene.world.cut(receiver, others)
        scene.world.after(scene.random.uniform(0.01, 0.3), receiver.crash)


def _last_acks_reach_only_receivers(scene: Scene) -> None:
    """A receiver that no sender hears goes on a little, then dies: what it did then may be done again."""
    if receiver := scene.receiver():
        scene.world.cut(receiver, scene.world.live_senders(LABEL))
        scene.world.after(scene.random.uniform(0.01, 0.8), receiver.crash)


FAULTS: dict[str, Callable[[Scene], None]] = {
    "receiver crashes": _crash_receiver,
    "receiver restarts": _restart_receiver,
    "receiver leaves": _receiver_leaves,
    "receiver joins": _receiver_joins,
    "one dies while two join": _one_dies_while_two_join,
    "many join": _many_join,
    "all leave and one comes": _all_leave_and_one_comes,
    "all die and new ones come": _all_die_and_new_ones_come,
    "receiver paused": _pause_receiver,
    "receiver paused for ten seconds": _pause_receiver_for_ten_seconds,
    "keeper naps": _keeper_naps,
    "keeper dies half heard": _keeper_dies_half_heard,
    "sender paused": _pause_sender,
    "sender crashes": _crash_sender,
    "sender restarts": _restart_sender,
    "deaf": _deaf,
    "mute": _mute,
    "cable out": _cable_out,
    "deaf to a sender": _deaf_to_a_sender,
    "unheard by a sender": _unheard_by_a_sender,
    "strangers": _strangers,
    "halves": _halves,
    "clogged": _clogged,
    "storm": _storm,
    "bad cable": _bad_cable,
    "last acks reach only the sender": _last_acks_reach_only_the_sender,
    "last acks reach only receivers": _last_acks_reach_only_receivers,
}


def _struck_out_unawares(scene: Scene) -> None:
    """Cut off until after it is struck out; then it hears everything but the stamps that say so."""
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        away = scene.random.uniform(1.0, 2.0)
        scene.world.partition([receiver], [sender], for_s=away)
        scene.world.cut(scene.everyone_but(receiver), receiver, away + scene.duration(), kinds=[FrameType.STAMP])


def _data_lost(scene: Scene) -> None:
    """A receiver whose data socket overflows: heartbeats come, frames with messages and stamps do not."""
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        kinds = [FrameType.DATA, FrameType.FRAGMENT, FrameType.TAIL, FrameType.STAMP]
        scene.world.cut(sender, receiver, scene.duration(), kinds=kinds)


def _control_lost(scene: Scene) -> None:
    """One whose heartbeats are not heard, or that hears none, while its other frames pass."""
    receiver = scene.receiver()
    if receiver:
        others = scene.everyone_but(receiver)
        kinds = scene.random.choice(([FrameType.ALIVE], [FrameType.SENDER_ALIVE], [FrameType.TABLE]))
        scene.world.cut(others, receiver, scene.duration(), kinds=kinds)
        scene.world.cut(receiver, others, scene.duration(), kinds=kinds)


def _reports_lost(scene: Scene) -> None:
    """A receiver whose reports and questions go astray."""
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        kinds = scene.random.choice(([FrameType.REPORT], [FrameType.ASK_PROGRESS], [FrameType.NAK]))
        scene.world.cut(receiver, sender, scene.duration(), kinds=kinds)


def _goodbyes_lost(scene: Scene) -> None:
    if receiver := scene.receiver():
        scene.world.cut(receiver, scene.everyone_but(receiver), kinds=[FrameType.GOODBYE])
        receiver.leave()


LATER: dict[str, Callable[[Scene], None]] = {
    "struck out unawares": _struck_out_unawares,
    "data lost": _data_lost,
    "control lost": _control_lost,
    "reports lost": _reports_lost,
    "goodbyes lost": _goodbyes_lost,
}


def _a_group_vanishes(scene: Scene, end: Callable[[ReceiverProcess], object]) -> None:
    """All of one group at once; later some come for one group or another."""
    group = _group(scene.plan, scene.random.randrange(scene.plan.receivers))
    for receiver in scene.world.live_receivers(LABEL, group):
        end(receiver)
    for _ in range(scene.random.randint(1, 3)):
        scene.world.after(scene.duration(), scene.join)


def _a_group_is_stopped(scene: Scene) -> None:
    """As if gone for its senders; then it is back, as it was."""
    away = scene.duration()
    for receiver in scene.world.live_receivers(LABEL, _group(scene.plan, scene.random.randrange(scene.plan.receivers))):
        scene.world.pause(receiver, away)


VANISHING: dict[str, Callable[[Scene], None]] = {
    "a group crashes": partial(_a_group_vanishes, end=Process.crash),
    "a group leaves": partial(_a_group_vanishes, end=ReceiverProcess.leave),
    "a group is stopped": _a_group_is_stopped,
}
"""Where groups are given up."""


def _recorder_crashes(scene: Scene) -> None:
    if recorder := scene.recorder():
        recorder.crash()


def _recorder_restarts(scene: Scene) -> None:
    if recorder := scene.recorder():
        scene.world.restart(recorder, after=scene.random.choice((0.0, scene.duration())))


def _recorder_leaves(scene: Scene) -> None:
    if recorder := scene.recorder():
        recorder.leave()


def _recorder_joins(scene: Scene) -> None:
    if len(scene.world.live_recorders()) < RECORDERS_MAX:
        _add_recorder(scene.world, scene.plan, scene.random.randrange(scene.plan.recorders))


def _recorder_paused(scene: Scene) -> None:
    if recorder := scene.recorder():
        scene.world.pause(recorder, scene.duration())


def _recorder_cut_off(scene: Scene) -> None:
    if recorder := scene.recorder():
        scene.world.partition([recorder], scene.everyone_but(recorder), for_s=scene.duration())


def _recorder_hears_badly(scene: Scene) -> None:
    if recorder := scene.recorder():
        scene.world.disturb(Link(loss=0.3, reorder=0.1), scene.everyone_but(recorder), recorder)


RECORDER_FAULTS: dict[str, Callable[[Scene], None]] = {
    "recorder crashes": _recorder_crashes,
    "recorder restarts": _recorder_restarts,
    "recorder leaves": _recorder_leaves,
    "recorder joins": _recorder_joins,
    "recorder paused": _recorder_paused,
    "recorder cut off": _recorder_cut_off,
    "recorder hears badly": _recorder_hears_badly,
}


# --- orders -------------------------------------------------------------------------------------------------------


def _group_paused(scene: Scene, luck: Random) -> None:
    """For a while, or until the world is healed."""
    group = _group(scene.plan, luck.randrange(scene.plan.receivers))
    scene.world.order(LABEL, OrderKind.PAUSE, group)
    pause = luck.uniform(1.0, 4.0)  # the world is not healed before the order was given
    if luck.random() < 0.5:
        scene.world.after(pause, partial(scene.world.order, LABEL, OrderKind.RESUME, group))
    else:
        scene.world.after(pause, lambda: None)


def _receiver_drained(scene: Scene, luck: Random) -> None:
    if live := scene.world.live_receivers(LABEL):
        scene.world.order(LABEL, OrderKind.DRAIN, f"{luck.choice(live).id:016x}")


def _receiver_weighed(scene: Scene, luck: Random) -> None:
    if live := scene.world.live_receivers(LABEL):
        scene.world.order(LABEL, OrderKind.WEIGHT, f"{luck.choice(live).id:016x}", luck.randint(1, 4))


ORDERS: dict[str, Callable[[Scene, Random], None]] = {
    "group paused": _group_paused,
    "receiver drained": _receiver_drained,
    "receiver weighed": _receiver_weighed,
}


def _resume_all(scene: Scene) -> None:
    """Every group goes on. Where all hear each other, only one of them hears the order: the others learn it from it."""
    world = scene.world
    for group in sorted({receiver.group for receiver in world.live_receivers(LABEL)}):
        asker = world.order(LABEL, OrderKind.RESUME, group)
        if scene.plan.lasting is None:
            _, *others = world.live_receivers(LABEL, group)
            world.cut(asker, others)


# --- what stays broken --------------------------------------------------------------------------------------------


def _stays_stopped(scene: Scene) -> Process | None:
    receiver = scene.receiver()
    if receiver:
        receiver.pause()
    return receiver


def _stays_cut_off(scene: Scene) -> Process | None:
    receiver = scene.receiver()
    if receiver:
        scene.world.partition([receiver], scene.everyone_but(receiver))
    return receiver


def _stays_mute(scene: Scene) -> Process | None:
    receiver = scene.receiver()
    if receiver:
        scene.world.cut(receiver, scene.everyone_but(receiver))
    return receiver


def _stays_deaf(scene: Scene) -> Process | None:
    receiver = scene.receiver()
    if receiver:
        scene.world.cut(scene.everyone_but(receiver), receiver)
    return receiver


def _stays_deaf_to_a_sender(scene: Scene) -> Process | None:
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        scene.world.cut(sender, receiver)
    return receiver


def _stays_unheard_by_a_sender(scene: Scene) -> Process | None:
    receiver, sender = scene.receiver(), scene.sender()
    if receiver and sender:
        scene.world.cut(receiver, sender)
    return receiver


def _stay_strangers(scene: Scene) -> Process | None:
    live = scene.world.live_receivers(LABEL)
    if len(live) >= 2:
        one, other = scene.random.sample(live, 2)
        scene.world.partition([one], [other])
    return None


LASTING: dict[str, Callable[[Scene], Process | None]] = {
    "stopped": _stays_stopped,
    "cut off": _stays_cut_off,
    "mute": _stays_mute,
    "deaf": _stays_deaf,
    "deaf to a sender": _stays_deaf_to_a_sender,
    "unheard by a sender": _stays_unheard_by_a_sender,
    "strangers": _stay_strangers,
}
"""Each returns the receiver on which nobody can count any more."""
