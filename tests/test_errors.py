"""What rvq raises."""

from __future__ import annotations

import inspect

import pytest

from rvq import errors
from rvq.errors import AlreadyDone, BadArgument, BadLabel, BadMessage, MessageTooLarge, NotDelivered, RvqError

ALL = [value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == errors.__name__]


@pytest.mark.parametrize("error", ALL)
def test_every_error_derives_from_one_root(error: type) -> None:
    assert issubclass(error, RvqError)


@pytest.mark.parametrize("error", ALL)
def test_every_error_says_what_it_stands_for(error: type) -> None:
    assert error.__doc__


def test_not_delivered_says_how_many_and_what_to_do() -> None:
    error = NotDelivered(3)
    assert error.undone == 3
    assert str(error).startswith("3 messages not done: raise linger=")


def test_not_delivered_says_why_where_that_is_known() -> None:
    assert str(NotDelivered(1, "nobody listens to work")) == "1 message not done: nobody listens to work"


def test_too_large_says_how_large_and_what_the_limit_is() -> None:
    error = MessageTooLarge(20_000_000, 16_777_216)
    assert (error.size, error.limit) == (20_000_000, 16_777_216)
    assert "20,000,000 bytes is over the limit of 16,777,216" in str(error)


def test_wrong_arguments_are_also_pythons_own_errors() -> None:
    assert issubclass(BadLabel, ValueError)
    assert issubclass(BadMessage, TypeError)
    assert issubclass(BadArgument, ValueError) and issubclass(BadArgument, TypeError)


def test_already_done_says_which_message_and_what_to_do() -> None:
    error = AlreadyDone(("work", "default", 255, 7))
    assert error.mark == ("work", "default", 255, 7)
    assert str(error) == "message 7 of sender 00000000000000ff to work is done in group default: acknowledge it"
