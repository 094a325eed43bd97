"""What a sending and a receiving end have in common."""

from __future__ import annotations

import math

from rvq.core.end import GOODBYES, End
from rvq.core.machine import Route
from rvq.wire.codec import decode_control, peek
from rvq.wire.frames import SenderGoodbye


def test_what_is_said_goes_out_once_and_carries_the_labels_tag() -> None:
    end = End(7, 0.2, now=1.0)
    end._say(Route.CONTROL, SenderGoodbye(5, "work"))
    ((target, datagram),) = end.take_outgoing()
    assert target is Route.CONTROL and peek(datagram)[1] == 7
    assert decode_control(datagram) == SenderGoodbye(5, "work")
    assert end.take_outgoing() == []


def test_it_is_woken_for_the_earliest_of_what_is_due() -> None:
    end = End(7, 0.2, now=1.0)
    end._wake_at(5.0)
    end._at_latest(3.0)
    end._at_latest(4.0)
    assert end.next_deadline() == 3.0


def test_one_that_came_late_has_slept() -> None:
    end = End(7, 0.2, now=1.0)
    end._wake_at(5.0)
    end._at_latest(3.0)
    assert end._naps.slept(4.5) == 1.5


def test_one_that_has_ended_is_not_woken_again() -> None:
    end = End(7, 0.2, now=1.0)
    end._say_goodbye(SenderGoodbye(5, "work"))
    assert len(end.take_outgoing()) == GOODBYES
    end._at_latest(2.0)
    assert end.next_deadline() == math.inf
