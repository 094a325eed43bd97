"""`rvq weight` takes what it needs. What it does is in test_ordering."""

from __future__ import annotations

import argparse

from rvq.cli import weight


def test_it_takes_what_it_needs() -> None:
    parser = argparse.ArgumentParser()
    weight.add_arguments(parser)
    args = parser.parse_args(["3f2a", "5", "--label", "work"])
    assert (args.id, args.weight, args.label) == ("3f2a", 5, "work")
