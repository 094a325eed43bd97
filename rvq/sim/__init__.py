"""The whole protocol in a simulated world: virtual time, a network with faults, processes that crash, and a verdict.

The machines are the product's own; only sockets, clocks and randomness are replaced. Everything follows from one seed.
Start at `World`; `python -m rvq.sim --seeds 200` runs random worlds.
"""

from rvq.sim.checkers import Promise, PromiseBroken, Verdict, Violation
from rvq.sim.clock import Clock, LocalClock, Runaway
from rvq.sim.network import Fault, Link, Network
from rvq.sim.observing import ObserverProcess
from rvq.sim.process import Process, ReceiverProcess, SenderProcess, State, TapProcess
from rvq.sim.recording import RecorderProcess
from rvq.sim.workloads import Plan, build_world, run_seed
from rvq.sim.world import World

__all__ = [
    "Clock",
    "Fault",
    "Link",
    "LocalClock",
    "Network",
    "ObserverProcess",
    "Plan",
    "Process",
    "Promise",
    "PromiseBroken",
    "ReceiverProcess",
    "RecorderProcess",
    "Runaway",
    "SenderProcess",
    "State",
    "TapProcess",
    "Verdict",
    "Violation",
    "World",
    "build_world",
    "run_seed",
]
