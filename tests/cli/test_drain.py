"""`rvq drain` takes what it needs. What it does is in test_ordering."""

from __future__ import annotations

import argparse

from rvq.cli import drain


def test_it_takes_what_it_needs() -> None:
    parser = argparse.ArgumentParser()
    drain.add_arguments(parser)
    args = parser.parse_args(["3f2a", "--label", "work"])
    assert (args.id, args.label) == ("3f2a", "work")
