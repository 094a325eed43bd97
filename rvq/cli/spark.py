"""`rvq spark`: the jobs on a journal. Owns the options, what fits which job, the words and the exit codes."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rvq.cli import values
from rvq.cli.command import ALL_DONE, FAULT, WrongUse
from rvq.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rvq.cli.words import Words

JOBS = {
    "audit": "what was lost, what was done twice, and by whom; exit code 1 if anything was",
    "stats": "counts, lag and latency in windows of time, as lines of JSON",
    "compact": "the messages as Parquet in the folder OUT: by label, date and shard",
    "replay": "the messages onto the bus again, as new ones",
}

_FITS = {
    "html": ("audit", "stats"),
    "json": ("audit",),
    "window": ("stats", "audit"),
    "by": ("stats",),
    "follow": ("stats",),
    "ranges": ("compact",),
    "to": ("replay",),
    "key": ("replay",),
    "sender": ("replay",),
    "until": ("stats", "compact", "replay"),
}
"""Options that mean something to some of the jobs only."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "jobs:\n" + "\n".join(f"  {name:<8} {text}" for name, text in JOBS.items())
    parser.add_argument("job", metavar="JOB", choices=JOBS, help="audit, stats, compact or replay")
    parser.add_argument("folder", metavar="DIR", help="the journal, as rvq record wrote it")
    parser.add_argument("out", metavar="OUT", nargs="?", help="with compact: a folder that is not there yet")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="where Spark runs (default: %(default)s)")
    parser.add_argument("--label", metavar="LABEL", action="append", help="only this label; may be given again")
    parser.add_argument("--since", metavar="TIME", type=values.moment, help="only what was heard from TIME on")
    parser.add_argument("--until", metavar="TIME", type=values.moment, help="only what was heard before TIME")
    parser.add_argument("--html", metavar="FILE", help="with audit and stats: a report with plots")
    parser.add_argument("--json", action="store_true", default=None, help="with audit: the findings as lines of JSON")
    parser.add_argument("--window", metavar="S", type=values.seconds_above_0, help="seconds of a window (10)")
    parser.add_argument("--by", metavar="WHAT", help="with stats: label, group, receiver, shard (the first three)")
    parser.add_argument("--follow", action="store_true", default=None, help="with stats: go on as the journal grows")
    parser.add_argument("--ranges", metavar="N", type=values.count, help="with compact: folders of shards a day (16)")
    parser.add_argument("--to", metavar="LABEL", help="with replay: to this label, not to their own")
    parser.add_argument("--key", metavar="K", type=values.filled, help="with replay: only those with this key")
    parser.add_argument("--sender", metavar="ID", type=_sender, help="with replay: only those of this sender")


def run(args: argparse.Namespace) -> int:
    """0 if all is well; 1 if an audit found something, or a job failed."""
    from rvq.cli.words import Words

    _check(args)
    missing = [name for name in ("pyspark", "pyarrow", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        raise SparkError(f"{', '.join(missing)} is not installed: pip install rvq[spark]")
    words = Words()
    from rvq.spark.session import make_session

    spark = make_session(args.master, f"rvq spark {args.job}")
    try:
        return _RUN[args.job](spark, args, words)
    finally:
        spark.stop()


def _check(args: argparse.Namespace) -> None:
    if (args.out is None) == (args.job == "compact"):
        raise WrongUse("say where to: rvq spark compact DIR OUT" if args.out is None else f"{args.job} has no OUT")
    for name, jobs in _FITS.items():
        if getattr(args, name) is not None and args.job not in jobs:
            raise WrongUse(f"--{name} means nothing to {args.job}: leave it out")
    if args.follow and args.html:
        raise WrongUse("--follow has no end, and --html wants one: give one of them")


def _options(args: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if args.label:
        options["subscribe"] = ",".join(args.label)
    for name, when in (("startingTimestamp", args.since), ("endingTimestamp", args.until)):
        if when is not None:
            options[name] = _milliseconds(when)
    return options


def _milliseconds(when: datetime) -> str:
    return str(int(when.timestamp() * 1000))


@contextmanager
def _progress(spark: SparkSession, args: argparse.Namespace, words: Words) -> Iterator[Callable[[str], None]]:
    from rvq.spark.progress import ProgressLine

    with ProgressLine(spark, args.job, lambda line: words.draw(line[: words.columns])) as line:
        try:
            yield line.say
        finally:
            words.erase()


def _audit(spark: SparkSession, args: argparse.Namespace, words: Words) -> int:
    from rvq.spark.audit import audit
    from rvq.spark.report import audit_page
    from rvq.spark.stats import stats, switches

    with _progress(spark, args, words) as progress:
        found = audit(spark, args.folder, progress=progress, **_options(args))
        if args.html:
            window = args.window or 10.0
            table = stats(spark, args.folder, window_s=window, progress=progress, **_options(args)).collect()
            rows = [row.asDict() for row in table]
            page = audit_page(args.folder, found, rows, switches(spark, args.folder, **_options(args)), window)
            Path(args.html).write_text(page)
    for one in found.findings:
        print(json.dumps(_plain(one)) if args.json else one)
    for receiver, missing in sorted(found.gaps.items()):
        words.say(f"{missing} words of receiver {receiver:016x} are not in the journal: what only they say is unknown")
    words.say(found.summary())
    return ALL_DONE if found.good else FAULT


def _plain(finding: Any) -> dict[str, Any]:
    names = ("verdict", "label", "group", "first", "last", "count")
    ids = {"sender": f"{finding.sender:016x}", "receivers": [f"{id:016x}" for id in finding.receivers]}
    return {name: getattr(finding, name) for name in names} | ids


def _stats(spark: SparkSession, args: argparse.Namespace, words: Words) -> int:
    from rvq.spark.report import stats_page
    from rvq.spark.stats import BY, stats, switches

    by = tuple(name.strip() for name in (args.by or "label,group,receiver").split(","))
    if not set(by) <= set(BY):
        raise WrongUse(f"--by {args.by}: give some of {', '.join(BY)}, with commas between")
    window = args.window or 10.0
    if args.follow:
        from rvq.spark.follow import follow

        return follow(spark, args.folder, _print_rows, window_s=window, by=by, **_options(args))
    if args.html and not {"label", "group", "receiver"} <= set(by):
        raise WrongUse("--html shows labels, groups and receivers: leave --by out")
    with _progress(spark, args, words) as progress:
        table = stats(spark, args.folder, window_s=window, by=by, progress=progress, **_options(args))
        rows = [row.asDict() for row in table.orderBy("window", *by).collect()]
        if args.html:
            marks = switches(spark, args.folder, **_options(args))
            Path(args.html).write_text(stats_page(args.folder, rows, marks, window))
    _print_rows(rows)
    words.say(f"{len(rows)} rows, {sum(row['inserted'] for row in rows):,} inserted")
    return ALL_DONE


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        shown = row | {"window": row["window"].astimezone().isoformat()}
        if row.get("receiver") is not None:
            shown["receiver"] = f"{row['receiver']:016x}"
        print(json.dumps(shown), flush=True)


def _compact(spark: SparkSession, args: argparse.Namespace, words: Words) -> int:
    from rvq.spark.compact import RANGES, compact

    with _progress(spark, args, words) as progress:
        count = compact(spark, args.folder, args.out, ranges=args.ranges or RANGES, progress=progress, **_options(args))
    words.say(f"{count:,} messages in {args.out}")
    return ALL_DONE


def _replay(spark: SparkSession, args: argparse.Namespace, words: Words) -> int:
    from rvq.spark.replay import replay

    bus = {"interface": args.interface, "port": args.port, "address": args.address, "keyFile": args.key_file}
    chosen = {"to": args.to, "key": args.key, "sender": args.sender}
    with _progress(spark, args, words) as progress:
        count = replay(
            spark,
            args.folder,
            bus={name: text for name, text in bus.items() if text is not None},
            progress=progress,
            **chosen,
            **_options(args),
        )
    words.say(f"sent {count}, done {count}, undone 0")
    return ALL_DONE


def _sender(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a sender: give its 16 hex digits") from None


_RUN = {"audit": _audit, "stats": _stats, "compact": _compact, "replay": _replay}
