"""`rvq key`: key files of sealed buses are made, shown and changed. Owns the options and the words.

    rvq key new bus.key      a new file with one key; copy it to every host, by a way that nobody reads

A bus is re-keyed while it runs, host by host, each step everywhere before the next one begins:

    rvq key add bus.key --from next.key    its key is opened with, too (next.key: rvq key new next.key, once)
    rvq key use bus.key                    and sealed with
    rvq key drop bus.key                   the others are refused
"""

from __future__ import annotations

import argparse
import os

from rvq.cli.command import ALL_DONE, WrongUse
from rvq.cli.words import say
from rvq.errors import BusError
from rvq.keyfile import Key, Keys, create_keys, new_key, read_keys, replace_keys

ACTIONS = {
    "new": "make FILE, with a new key",
    "add": "add a new key to FILE, or with --from those of another file; they are opened with, and not used yet",
    "use": "seal with key ID from now on (the one that was added last, if no ID is given)",
    "drop": "take key ID away (all that are not in use, if no ID is given): it is no longer opened with",
    "ls": "the ids of the keys; the secrets are never shown",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = "\n".join(f"  {name:<8} {text}" for name, text in ACTIONS.items())
    parser.epilog = (
        f"actions:\n{actions}\n\nprocesses read their key file again when it changes. To re-key a bus while it runs:"
        " add the key on every host, then use it on every host, then drop the old one on every host"
    )
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help="new, add, use, drop or ls")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the key file; --key-file or RVQ_KEY_FILE if left out")
    parser.add_argument("id", metavar="ID", nargs="?", help="with use and drop: a key's id, or how it begins")
    parser.add_argument("--from", dest="source", metavar="OTHER", help="with add: a key file whose keys are added")


def run(args: argparse.Namespace) -> int:
    path = args.file or args.key_file or os.environ.get("RVQ_KEY_FILE")
    if not path:
        raise WrongUse(f"say which key file: rvq key {args.action} FILE")
    if args.id is not None and args.action not in ("use", "drop"):
        raise WrongUse(f"ID means nothing to {args.action}: leave it out")
    if args.source is not None and args.action != "add":
        raise WrongUse(f"--from means nothing to {args.action}: leave it out")
    if args.action == "new":
        keys = Keys([new_key()])
        create_keys(path, keys)
        say(f"made {path}, for its owner alone: copy it to every host of the bus by a way that nobody else reads")
    else:
        keys = before = read_keys(path)
        if args.action != "ls":
            keys = _changed(args, before)
            if keys != before:
                replace_keys(path, keys)
    for key in keys.live.values():
        print(f"{key.name}  {'in use' if key == keys.in_use else 'live'}")
    return ALL_DONE


def _changed(args: argparse.Namespace, keys: Keys) -> Keys:
    live = list(keys.live.values())
    if args.action == "add":
        added = read_keys(args.source).live.values() if args.source else [new_key()]
        return Keys([*live, *added], keys.in_use)
    if args.action == "use":
        return Keys(live, _find(live, args.id) if args.id else live[-1])
    gone = [_find(live, args.id)] if args.id else [key for key in live if key != keys.in_use]
    if keys.in_use in gone:
        raise BusError(f"key {keys.in_use.name} is in use: use another one first (rvq key use)")
    return Keys([key for key in live if key not in gone], keys.in_use)


def _find(live: list[Key], id: str) -> Key:
    found = [key for key in live if key.name.startswith(id.lower())]
    if len(found) != 1:
        raise WrongUse(f"{len(found)} keys begin with {id!r}: give the id of one of {', '.join(k.name for k in live)}")
    return found[0]
