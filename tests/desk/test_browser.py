"""The desk in a real browser: from end to end, by two people, in all looks."""

import json
import os
import re
import signal
import subprocess
import sys
from time import monotonic, sleep

import pytest
from small_desk import make_desk, serving, truth, write_shop

from chromium import Chromium
from evengraph.desk.label_file import LabelFile
from evengraph.desk.pages import class_answer
from evengraph.desk.training import train

pytest.importorskip("starlette")

NASTY = '<img src=x onerror="document.title = 1">'
LONG = "Averylongnamewithoutanyspace" * 3


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A desk with a trained model and classes of odd names."""
    made = make_desk(tmp_path_factory.mktemp("desk"), labelled=20, classes=(NASTY, LONG))

    def start(job):
        train(job)
        made.trainer.on_done(job, "")

    made.trainer.start = start
    made.train()
    assert made.method is not None
    return made


@pytest.fixture(scope="module")
def access(desk):
    with serving(desk) as found:
        yield found


@pytest.fixture
def page(browser, access):
    browser.look()
    browser.resize(1280)
    browser.visit(access.address)
    return browser


def text(page, selector):
    return page.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")


def until(page, expression, seconds=60):
    end = monotonic() + seconds
    while not page.value(expression):
        assert monotonic() < end, expression
        sleep(0.1)


def start(folder):
    """The command itself; gives the process and its address."""
    words = ["desk", "shop", "--label", "kind", "--no-open", "--method", "logistic"]
    words += ["--retrain-every", "30"]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "evengraph", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return process, found[0]
    raise AssertionError(process.stderr.read())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_thirty_labels_by_keyboard_survive_a_kill(browser, tmp_path):
    write_shop(tmp_path / "shop", labelled=5)
    server, address = start(tmp_path)
    try:
        browser.visit(address)
        given = {}
        for _ in range(30):
            id = text(browser, "h1")
            given[id] = truth(id)
            browser.press({"fraud": "1", "honest": "2"}[truth(id)], loads=True)
        until(
            browser,
            'document.querySelector("#side").textContent.includes("trained on")',
            240,
        )
    finally:
        server.send_signal(signal.SIGKILL)
        server.communicate()
    browser.press("1")
    until(browser, 'document.querySelector("#said").textContent.startsWith("Not saved")')
    file = LabelFile(tmp_path / "shop-kind.labels.sqlite", "kind")
    assert {event.node: event.label for event in file.events()} == given
    server, address = start(tmp_path)
    try:
        browser.visit(address)
        side = text(browser, "#side")
        assert "30 labelled here" in side
        assert ", trained on" in side
        assert text(browser, "h1") not in given
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)


def test_two_browsers_share_the_work(page, access, desk, tmp_path_factory):
    other = Chromium(tmp_path_factory.mktemp("other"))
    try:
        other.visit(access.address)
        first, second = text(page, "h1"), text(other, "h1")
        assert first != second
        page.press("2", loads=True)
        other.press("d", loads=True)
        assert text(page, "h1") not in (first, second, text(other, "h1"))
        other.visit(f"http://{access.hosts[0]}/done")
        assert {first, second} <= set(other.value("[...document.links].map((a) => a.textContent)"))
        other.visit(f"http://{access.hosts[0]}/")
        page.press("u", loads=True)
        assert text(page, "h1") == first
        assert desk.answers.of(first) is None
        assert desk.answers.of(second).kind == "unknown"
    finally:
        other.close()


def test_lists_follow_what_others_do(page, access, desk):
    listed = "[...document.querySelectorAll('[data-list] a')].map((a) => a.textContent)"
    first, second = (desk.nodes.ids[row] for row in desk.waiting()[:2])
    page.visit(f"http://{access.hosts[0]}/queue")
    assert {first, second} <= set(page.value(listed))
    page.value("document.querySelectorAll('[data-list] a')[1].focus()")
    desk.answer(desk.nodes.rows[first], "label", "honest", who="bo", session="other")
    page.value("void watch()")  # which comes by itself after six seconds
    until(page, f"!{listed}.includes('{first}')")
    assert page.value("document.activeElement.textContent") == second
    page.visit(f"http://{access.hosts[0]}/done")
    desk.answer(desk.nodes.rows[second], "unknown", who="bo", session="other")
    assert second not in page.value(listed)
    page.value("void watch()")
    until(page, f"{listed}.includes('{second}')")


def test_keys_do_what_they_say(page, desk):
    id = text(page, "h1")
    page.press("ArrowRight", loads=True)
    skipped = text(page, "h1")
    assert skipped != id
    page.press("n")
    page.write("see 12")  # keys of classes, as text
    page.press("Enter", loads=True)
    assert text(page, "h1") == skipped
    assert [event.note for event in desk.answers.history(skipped)] == ["see 12"]
    assert desk.answers.of(skipped) is None
    page.press("x")
    page.press("9")
    assert text(page, "h1") == skipped
    page.press("1", loads=True)
    assert desk.answers.of(skipped).label == "fraud"


def test_markup_in_names_is_text(page, desk):
    until(page, 'document.body.textContent.includes("oppose it")')
    names = page.value('[...document.querySelectorAll(".answer-name")].map((n) => n.textContent)')
    assert names[2] == NASTY
    assert page.value('document.querySelectorAll("img").length') == 0
    assert page.value("document.title") != "1"
    assert page.complaints == []
    assert all("127.0.0.1" in one or one.startswith("data:") for one in page.requests)


def test_without_scripts_the_buttons_work(page, desk):
    id = text(page, "h1")
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.visit(page.value("location.href"))
        button = f'document.querySelector("[value={class_answer("fraud")}]")'
        page.point(button, click=True)
        page.wait_for("Page.loadEventFired")
    finally:
        page.send("Emulation.setScriptExecutionDisabled", value=False)
    assert desk.answers.of(id).label == "fraud"


@pytest.mark.parametrize("path", ["/", "/queue", "/done"])
def test_it_fits_and_can_be_read_by_all(page, access, path):
    page.visit(f"http://{access.hosts[0]}{path}")
    if path == "/":
        until(page, 'document.body.textContent.includes("oppose it")')
    for width in (390, 1280):
        for dark in (False, True):
            page.look(dark=dark)
            page.resize(width)
            assert page.value("document.documentElement.scrollWidth") == width
            assert page.barriers() == [], (width, dark)
