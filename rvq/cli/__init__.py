"""The commands. Owns words for people, options and exit codes; everything else is the library's.

Commands import what is heavy only when they run, so that Ctrl-C is met politely and `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `rvq`: its first argument says which one."""
    from rvq.cli.command import dispatch

    return dispatch(arguments)
