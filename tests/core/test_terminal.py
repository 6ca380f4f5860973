"""The console: markup is for us, control characters for nobody."""

import io

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evengraph.core.text import make_console

NASTY = "\x1b]0;title\x07\x1b[2Ja"


def printed(*renderables):
    file = io.StringIO()
    console = make_console(file=file, width=60, force_terminal=True, color_system=None)
    for renderable in renderables:
        console.print(renderable)
    return file.getvalue()


def test_whatever_is_printed_holds_no_control_character():
    table = Table(NASTY)
    table.add_row(NASTY, Text(NASTY))
    text = printed(NASTY, Text(NASTY), table, Panel(NASTY, title=NASTY))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count(r"\x1b[2Ja") >= 4


def test_a_bar_may_still_move_the_cursor():
    file = io.StringIO()
    console = make_console(file=file, width=60, force_terminal=True)
    console.print("[red]red[/]")
    console.show_cursor(False)
    assert "\x1b[31mred\x1b[0m" in file.getvalue()
    assert file.getvalue().endswith("\x1b[?25l")
