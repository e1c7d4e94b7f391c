"""What an instruction's end says: values, rich data, errors."""

from __future__ import annotations

import base64

import pytest

from everforge.wire.messages import Setup

from .driver import Guest


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("x = 5", None),
        ("x = 5\nx * 2", "10"),
        ("'it\\'s'", '"it\'s"'),
        ("None", None),
        ("", None),
        ("# nothing", None),
        ("7;", None),
        ("{'b': 1, 'a': [1, 2]}", "{'b': 1, 'a': [1, 2]}"),
        ("list(range(3000))[-1]", "2999"),
        ("import asyncio\nawait asyncio.sleep(0)\n'awaited'", "'awaited'"),
        ("await asyncio.sleep(0, 'alone')", "'alone'"),
        ("(lambda: (yield))().__class__.__name__", "'generator'"),
        ("'\\ud800'", "'\\ud800'"),
        ("__name__", "'__main__'"),
        ("'é' * 2 + '\\N{PILE OF POO}'", "'éé\U0001f4a9'"),
        ("if True:\n    z = 1\nz", "1"),
        ("    3", "3"),
    ],
)
def test_the_value_is_the_repr_of_the_last_expression(guest: Guest, code: str, value: str | None) -> None:
    done = guest.run(code)
    assert (done.end.end, done.end.value, done.end.data) == ("value", value, None)


def test_underscores_hold_the_last_three_values(guest: Guest) -> None:
    for code in ("'a'", "'b'", "'c'"):
        guest.run(code)
    assert guest.value("_, __, ___") == "('c', 'b', 'a')"


def test_future_imports_hold_for_later_instructions(fresh: Guest) -> None:
    fresh.run("from __future__ import annotations")
    assert fresh.value("def f(a: NotDefined): ...\nf.__annotations__") == "{'a': 'NotDefined'}"


def test_classes_of_the_user_can_be_pickled(guest: Guest) -> None:
    assert guest.value("import pickle\nclass P:\n    x = 3\npickle.loads(pickle.dumps(P())).x, P.__module__") == "(3, '__main__')"


def test_an_error_has_type_message_and_the_users_frames_only(guest: Guest) -> None:
    number = guest.begin("def f():\n    return 1 / 0\nf()")
    end = guest.finish(number).end
    assert (end.end, end.error_name, end.error_message) == ("error", "ZeroDivisionError", "division by zero")
    assert end.traceback is not None
    assert f'File "<instruction {number}>", line 2, in f' in end.traceback
    assert "return 1 / 0" in end.traceback
    assert "everforge" not in end.traceback
    assert "IPython" not in end.traceback
    assert "\x1b" not in end.traceback
    assert end.traceback.endswith("ZeroDivisionError: division by zero")


def test_an_error_in_a_function_of_an_earlier_instruction_shows_its_source(guest: Guest) -> None:
    guest.run("def fails():\n    raise KeyError('deep')  # here")
    assert "raise KeyError('deep')  # here" in (guest.run("fails()").end.traceback or "")


def test_a_syntax_error_points_at_its_place(guest: Guest) -> None:
    end = guest.run("def f(:\n    pass").end
    assert (end.end, end.error_name) == ("error", "SyntaxError")
    assert "def f(:" in (end.traceback or "")
    assert "^" in (end.traceback or "")


def test_chained_errors_and_notes_are_shown(guest: Guest) -> None:
    end = guest.run("try:\n    1/0\nexcept Exception as e:\n    e.add_note('a note')\n    raise ValueError('second') from e").end
    for part in ("ZeroDivisionError", "a note", "direct cause", "ValueError: second"):
        assert part in (end.traceback or "")


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("import sys; sys.exit()", "SystemExit", "0"),
        ("sys.exit(3)", "SystemExit", "3"),
        ("exit()", "SystemExit", "0"),
        ("quit", "SystemExit", "0"),
        ("def deep():\n    return deep()\ndeep()", "RecursionError", "maximum recursion depth exceeded"),
        ("a\x00b", "Error", "null byte"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E", "could not be made"),
        ("(" * 1000 + ")" * 1000, "", ""),
        ("await undefined_name", "NameError", "undefined_name"),
        ("import asyncio\nasync def f(): raise OSError('inside')\nawait f()", "OSError", "inside"),
    ],
)
def test_every_failure_is_one_error_and_the_machine_lives_with_its_variables(guest: Guest, code: str, name: str, message: str) -> None:
    guest.run("kept = 'alive'")
    end = guest.run(code).end
    assert end.end == "error"
    assert name in (end.error_name or "")
    assert message in (end.error_message or "")
    assert guest.value("kept") == "'alive'"


def test_a_repr_that_raises_is_an_error_that_says_so(guest: Guest) -> None:
    end = guest.run("class R:\n    def __repr__(self): raise ValueError('no repr')\nR()").end
    assert (end.end, end.error_name, end.error_message) == ("error", "ValueError", "no repr")
    assert "repr" in (end.note or "")


def test_a_value_over_the_limit_is_cut_and_the_note_says_so(fresh: Guest) -> None:
    fresh.send(Setup({}, {"result_bytes_max": 100_000}))
    for code in ("'x' * 50_000_000", "'\\x00é' * 1_000_000"):
        end = fresh.run(code).end
        assert end.end == "value"
        assert 50_000 < len((end.value or "").encode("unicode_escape")) <= 100_000
        assert "cut" in (end.note or "")


def test_a_data_frame_comes_as_text_and_html(guest: Guest) -> None:
    end = guest.run("import pandas\npandas.DataFrame({'a': [1, 2]})").end
    assert end.value == "   a\n0  1\n1  2"
    assert end.data is not None
    assert "<table" in end.data["text/html"]
    assert end.data["text/plain"] == end.value


def test_rich_types_come_in_the_bundle(guest: Guest) -> None:
    code = "from IPython.display import *\n"
    for expression, mime, content in [
        ("HTML('<b>x</b>')", "text/html", "<b>x</b>"),
        ("Markdown('# x')", "text/markdown", "# x"),
        ("Latex('$x$')", "text/latex", "$x$"),
        ("JSON({'a': [1, 2]})", "application/json", {"a": [1, 2]}),
        ("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", "image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    ]:
        data = guest.run(code + expression).end.data
        assert data is not None
        assert data[mime] == content


def test_a_mime_bundle_with_nan_and_foreign_objects_becomes_plain_json(guest: Guest) -> None:
    code = "class M:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n        return {'application/json': {'a': float('nan'), 'b': {1, 2}.__class__}}\nM()"
    data = guest.run(code).end.data
    assert data is not None
    assert data["application/json"]["a"] is None


def test_a_plotly_figure_comes_as_plotly_json(guest: Guest) -> None:
    done = guest.run("import plotly.graph_objects as go\nfig = go.Figure(go.Scatter(y=[1, 2]))\nfig")
    assert done.said == []
    assert done.end.data is not None
    assert done.end.data["application/vnd.plotly.v1+json"]["data"][0]["type"] == "scatter"
    shown = guest.run("display(fig)")
    assert [list(d.data) for d in shown.displays] == [["application/vnd.plotly.v1+json", *list(shown.displays[0].data)[1:]]]


def test_a_figure_is_displayed_as_png_in_order_with_the_output(guest: Guest) -> None:
    done = guest.run("import matplotlib.pyplot as plt\nprint('before')\nplt.plot([1, 2])\nplt.show()\nprint('after')", 60)
    kinds = [type(m).__name__ for m in done.said]
    assert kinds == ["Outputs", "Display", "Outputs"]
    assert base64.b64decode(done.displays[0].data["image/png"]).startswith(b"\x89PNG")
    assert done.displays[0].instruction == done.end.instruction


def test_an_unshown_figure_is_displayed_at_the_end(guest: Guest) -> None:
    done = guest.run("plt.plot([3, 1]);")
    assert len(done.displays) == 1
    assert done.end.value is None


def test_display_and_its_updates_are_told(guest: Guest) -> None:
    done = guest.run("h = display('one', display_id='d')\nh.update('two')")
    assert [d.data["text/plain"] for d in done.displays] == ["'one'", "'two'"]
    assert done.displays[1].metadata == {"display_id": "d", "update": True}


def test_a_magic_of_ipython_works(guest: Guest) -> None:
    done = guest.run("%%time\nq = 1")
    assert done.end.end == "value"
    assert any("Wall time" in line for line in done.stdout)
    assert guest.value("q") == "1"
    assert guest.run("%pwd").end.value == guest.run("pwd").end.value != None  # noqa: E711
    assert guest.run("get_ipython().__class__.__name__").end.value == "'MachineShell'"


def test_shell_commands_work(guest: Guest) -> None:
    assert guest.run("!echo out; echo err >&2").lines == [("stdout", "out"), ("stderr", "err")]
    assert guest.run("found = !echo caught\nfound").end.value == "['caught']"
    assert guest.run("name = 'you'\n!echo hello {name}").stdout == ["hello you"]
    assert guest.run("%%bash\necho from bash").stdout == ["from bash"]


def test_the_users_own_transformers_are_used(fresh: Guest) -> None:
    fresh.run("get_ipython().input_transformers_post.append(lambda lines: [l.replace('TWO', '2') for l in lines])")
    assert fresh.value("TWO + 1") == "3"


def test_the_source_of_a_function_can_be_read(guest: Guest) -> None:
    guest.run("def seen():\n    return 'source'")
    assert "return" in (guest.value("import inspect; inspect.getsource(seen)") or "")


@pytest.mark.parametrize(
    "code",
    [
        "class M(type):\n    @property\n    def __name__(cls): raise ValueError\nclass E(Exception, metaclass=M): pass\nraise E('x')",
        "class E(Exception):\n    @property\n    def __traceback__(self): raise ValueError\nraise E('x')",
        "class E(Exception):\n    def __getattribute__(self, name): raise ValueError(name)\nraise E('x')",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "class E(Exception):\n    @property\n    def __class__(self): raise ValueError\nraise E('x')",
    ],
)
def test_an_exception_that_fights_being_looked_at_still_gives_an_end(guest: Guest, code: str) -> None:
    guest.run("kept = 'kept'")
    done = guest.run(code)
    assert done.end.end == "error"
    assert guest.run("kept").end.value == "'kept'"


def test_rich_data_of_too_many_values_is_left_out_and_the_interpreter_lives(guest: Guest) -> None:
    heavy = "from IPython.display import JSON, display\nkept = 1\nheavy = JSON([[] for _ in range(2_000_000)])\n"
    done = guest.run(f"{heavy}display(heavy)", 60)
    assert done.end.end == "value"
    assert not done.displays
    assert "too many values" in done.stderr[0]
    done = guest.run("heavy", 60)
    assert done.end.data is None
    assert "too many values" in (done.end.note or "")
    assert guest.value("del heavy; kept") == "1"
