from __future__ import annotations

from pathlib import Path

import pytest

from everforge.machines.lifecycle import ACCEPTING, RESIDENCE, TURN, Arrow, Residence, Turn, TurnArrow, diagram, move, state, turn
from everforge.machines.recover import MATRIX, Guest
from everforge.wire.errors import WrongState


def test_every_arrow_not_in_the_table_raises_and_names_both_sides() -> None:
    for residence in Residence:
        for arrow in Arrow:
            if arrow in RESIDENCE[residence]:
                assert move(residence, arrow) is RESIDENCE[residence][arrow]
            else:
                with pytest.raises(WrongState, match=f"{residence} cannot go through {arrow}"):
                    move(residence, arrow)


def test_every_residence_is_reached_and_all_but_the_end_can_be_deleted() -> None:
    reached = {target for arrows in RESIDENCE.values() for target in arrows.values()} | {Residence.CREATING}
    assert reached == set(Residence)
    for residence in set(Residence) - {Residence.DELETING, Residence.DELETED}:
        assert RESIDENCE[residence][Arrow.DELETE_ASKED] is Residence.DELETING


def test_an_instruction_starts_only_on_an_awake_machine() -> None:
    for residence in Residence:
        if residence is Residence.AWAKE:
            assert turn(Turn.IDLE, TurnArrow.TURN_STARTED, residence) is Turn.RUNNING
        else:
            with pytest.raises(WrongState):
                turn(Turn.IDLE, TurnArrow.TURN_STARTED, residence)


def test_turns_follow_their_table() -> None:
    for now in Turn:
        for arrow in set(TurnArrow) - set(TURN[now]):
            with pytest.raises(WrongState):
                turn(now, arrow, Residence.AWAKE)


def test_the_recovery_matrix_has_a_cell_for_everything_a_crash_can_leave() -> None:
    assert set(MATRIX) == {(r, g) for r in set(Residence) - {Residence.DELETED} for g in Guest}
    for (residence, _), (_, arrow) in MATRIX.items():
        if arrow is not None:
            move(residence, arrow)


def test_what_users_see_is_derived() -> None:
    assert state(Residence.AWAKE, Turn.IDLE) == "ready"
    assert state(Residence.SAVING, Turn.RUNNING) == "busy"
    assert {state(r, Turn.IDLE) for r in Residence} == {"creating", "ready", "hibernating", "asleep", "waking", "broken", "deleted"}
    assert Residence.BROKEN not in ACCEPTING


def test_the_diagram_has_every_arrow_of_the_table() -> None:
    drawn = diagram()
    for residence, arrows in RESIDENCE.items():
        for arrow, target in arrows.items():
            assert f"    {residence} --> {target}: {arrow}\n" in drawn


def test_the_diagram_in_the_documents_is_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "lifecycle.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text()
