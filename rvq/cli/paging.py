"""`rvq top --web`: the options, and the words. Owns who may be served what; the page is `rvq.web`'s."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Final

from rvq.cli.command import ALL_DONE, WrongUse
from rvq.errors import BadArgument, WebError

if TYPE_CHECKING:
    from rvq.bus import Bus
    from rvq.cli.words import Words
    from rvq.web.place import Place

DEFAULT: Final = "7480"
"""Where `--web` alone serves: a port of this machine's own."""


def add_web_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --web, --token-file and --admin."""
    parser.add_argument(
        "--web",
        metavar="[ADDRESS:]PORT",
        nargs="?",
        const=DEFAULT,
        type=_place,
        help=f"serve a live page to browsers, on this machine only unless an address is given ({DEFAULT})",
    )
    parser.add_argument(
        "--token-file",
        metavar="F",
        help="with --web: who shows the first line of F may see the page (RVQ_WEB_TOKEN); needed on other addresses",
    )
    parser.add_argument(
        "--admin", action="store_true", help="with --web: the page may drain and weigh receivers, and pause groups"
    )


def check_web(args: argparse.Namespace) -> None:
    """WrongUse where options of the page stand without it."""
    for option, is_there in (("--token-file", args.token_file is not None), ("--admin", args.admin)):
        if is_there and args.web is None:
            raise WrongUse(f"{option} is for the page: give --web too")


async def serve(args: argparse.Namespace, bus: Bus) -> int:
    """Serves the page until it is told to leave. 2 if it would serve strangers; 1 if it cannot be served there."""
    if importlib.util.find_spec("aiohttp") is None:
        raise WebError("the page needs aiohttp: pip install 'rvq[web]'")
    from rvq.aio.observer import Observer
    from rvq.cli.signals import calling_on_signals
    from rvq.cli.words import Words, saying_warnings
    from rvq.web.keys import read_token
    from rvq.web.orders import Orders
    from rvq.web.server import Page

    token = read_token(args.token_file)
    words, stopping = Words(), asyncio.Event()
    orders = Orders(bus) if args.admin else None
    async with Observer(bus, args.labels) as observer:
        page = Page(observer, args.web, token=token, admin=orders, sealed=bus.key is not None)
        with saying_warnings(args.prog, words), calling_on_signals(stopping.set):
            async with page:
                _tell(args, page.place, words, token)
                over = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(page.wait())]
                done, waiting = await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
                for one in waiting:
                    one.cancel()
                for one in done:
                    one.result()
    return ALL_DONE


def _tell(args: argparse.Namespace, place: Place, words: Words, token: str | None) -> None:
    words.say(f"{args.prog}: the page is at {place.url}{' (asks for the token)' if token else ''}")
    if not place.is_loopback:
        words.say(f"{args.prog}: what it sends can be read on the way: put TLS before it, or use a tunnel")
    if args.token_file is not None and os.stat(args.token_file).st_mode & 0o077:
        words.say(f"{args.prog}: others on this machine can read {args.token_file}: chmod 600 {args.token_file}")


def _place(text: str) -> Place:
    from rvq.web.place import Place

    try:
        return Place.parse(text)
    except BadArgument as error:
        raise ArgumentTypeError(str(error)) from None
