"""`python -m bench`: runs the benches, prints a table of each, and keeps all figures as JSON in bench/results/."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from dataclasses import replace

from bench.figures import Bench, Figure, Outcome, Skipped, keep, machine, table
from bench.group import death, join, loss, memory, once, record, stop, tables, watched
from bench.group.fleet import Trouble
from bench.micro import acks, codec, instructions, lanes, single, stride
from bench.peers import compare, fanout, growth, hosts, sealed
from bench.spark import rows

BENCHES = [
    Bench("once", "nothing lost, repeated or invented", once.run),
    Bench("join", "a receiver that joins causes no pause", join.run),
    Bench("death", "kill -9 of one of four receivers", death.run),
    Bench("stop", "SIGSTOP for ten seconds", stop.run),
    Bench("loss", "5 % loss at every receiver (network namespaces)", loss.run),
    Bench("stalled", "memory with a receiver that stops reading", memory.run_stalled),
    Bench("passed", "memory with 10,000,000 messages passed", memory.run_passed),
    Bench("record", "what a journal costs: the same messages with a recorder and without", record.run),
    Bench("watched", "what looking on costs: the same messages with rvq top and its page open or not", watched.run),
    Bench("peers", "rvq beside its peers and bare multicast, in the same run", compare.run),
    Bench("hosts", "rvq across hosts beside rvq on loopback (network namespaces)", hosts.run),
    Bench("sealed", "what a key costs: the same messages on a sealed bus and on a plain one", sealed.run),
    Bench("fanout", "what doing without multicast costs: the same messages sent to each receiver", fanout.run),
    Bench("growth", "more receivers, more senders: rate, processor time, control traffic", growth.run),
    Bench("tables", "tables in the simulator: 100 join at once, 1,000 members", tables.run),
    Bench("spark", "Spark reads a journal, beside Parquet in the same run", rows.run),
    Bench("codec", "single steps: packing, frames, reading", codec.run),
    Bench("stride", "single steps: what a receiver does not touch costs nothing", stride.run),
    Bench("lanes", "single steps: who owns what", lanes.run),
    Bench("acks", "single steps: what is done", acks.run),
    Bench("single", "single steps: a message that is sent and handled alone", single.run),
    Bench("instructions", "single steps: instructions, counted by valgrind", instructions.run),
]


def run(bench: Bench, quick: bool) -> Outcome:
    """Measured, or why not."""
    outcome = Outcome(bench.name, bench.what)
    began = time.monotonic()
    try:
        for figure in bench.run(quick):
            outcome.figures.append(_unjudged(figure) if quick else figure)
    except Skipped as reason:
        outcome.skipped = str(reason)
    except Trouble as trouble:
        outcome.failed = str(trouble)
    except Exception:  # whatever it is, the figures of the others are kept
        outcome.failed = traceback.format_exc().strip()
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def _unjudged(figure: Figure) -> Figure:
    """Small sizes measure nothing. But what must not happen at all must not happen there either."""
    return figure if figure.most == 0 else replace(figure, most=None, least=None)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [bench.name for bench in BENCHES]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to measure")
    parser.add_argument("--list", action="store_true", help="say what there is")
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(f"{bench.name:<12} {bench.what}" for bench in BENCHES))
        return 0
    facts = machine()
    print(" · ".join(f"{name} {value}" for name, value in facts.items() if name != "at"), flush=True)
    outcomes = []
    for bench in BENCHES:
        if args.only is None or bench.name in args.only:
            outcomes.append(run(bench, args.quick))
            print(f"\n{table(outcomes[-1])}", flush=True)
    print(f"\nkept in {keep(outcomes, facts)}")
    missed = [outcome.name for outcome in outcomes if not outcome.good]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
