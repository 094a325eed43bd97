"""Messages that wait for a frame."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rvq.core.backlog import COMPACT_MESSAGES, Backlog
from rvq.wire.batch import RECORD_OVERHEAD, Records, make_record, make_records

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.binary(max_size=40)),
        st.tuples(st.just("extend"), st.lists(st.binary(max_size=40), min_size=1, max_size=20)),
        st.tuples(st.just("take"), st.integers(0, 200)),
        st.tuples(st.just("take_one"), st.none()),
    )
)


@given(steps)
def test_it_gives_out_what_went_in_in_order_and_knows_its_size(steps: list[tuple[str, object]]) -> None:
    backlog, model = Backlog(), list[bytes]()
    for step, value in steps:
        if step == "add":
            backlog.add(make_record(value))
            model.append(value)  # type: ignore[arg-type]
        elif step == "extend":
            backlog.extend(make_records(value))  # type: ignore[arg-type]
            model += value  # type: ignore[operator]
        elif step == "take":
            taken = backlog.take(value, 5).datas  # type: ignore[arg-type]
            assert taken == model[: len(taken)]
            del model[: len(taken)]
            assert sum(len(data) + RECORD_OVERHEAD for data in taken) <= value  # type: ignore[operator]
            if model and len(taken) < 5:
                assert sum(len(data) + RECORD_OVERHEAD for data in [*taken, model[0]]) > value  # type: ignore[operator]
        elif model:
            assert backlog.take_one().data == model.pop(0)
        backlog.check_invariants()
        assert len(backlog) == len(model)


def test_a_long_backlog_is_let_go_as_it_is_taken() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"%d" % n for n in range(3 * COMPACT_MESSAGES)]))
    taken: list[bytes] = []
    while backlog:
        taken += backlog.take(1000, 100).datas
        backlog.check_invariants()
        assert len(backlog._ends) <= len(backlog) + COMPACT_MESSAGES + 100
    assert taken == [b"%d" % n for n in range(3 * COMPACT_MESSAGES)]


def test_it_tells_that_keys_are_wanted() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"x"]))
    assert not backlog.has_keys
    backlog.extend(Records.of([make_record(b"x"), make_record(b"x", key="k")]))
    assert backlog.has_keys
    single = Backlog()
    single.add(make_record(b"x", key="k"))
    assert single.has_keys
