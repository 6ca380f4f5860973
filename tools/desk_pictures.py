"""Take the pictures of docs/labelling.md in Chromium: the desk over examples/accounts, at work.

python -m tools.desk_pictures
"""

import sys
import tempfile
from pathlib import Path
from time import sleep

import evengraph as eg
from evengraph.desk.desk import Desk, Triage
from evengraph.desk.label_file import LabelFile
from evengraph.desk.nodes import open_for_model, open_nodes
from evengraph.desk.training import DeskOptions
from tools.picture_sources import record

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "desk")]

from small_desk import serving  # noqa: E402

from chromium import Chromium  # noqa: E402

ACCOUNTS = str(ROOT / "examples" / "accounts")
FOLDER = ROOT / "docs" / "desk"
LABELS = 12
LIMIT = 20.0  # seconds for a training


def press_best(browser: Chromium, answers: int) -> None:
    """Answer as the model would, by its keys."""
    best = """(() => {
      const share = (one) => parseFloat(one.querySelector(".share")?.textContent ?? "-1");
      const all = [...document.querySelectorAll(".answer")];
      return all.sort((a, b) => share(b) - share(a))[0].dataset.key;
    })()"""
    for _ in range(answers):
        browser.press(browser.value(best), loads=True)


def settle(browser: Chromium, desk: Desk, address: str) -> None:
    """Wait for the training and load the page with its explanation."""
    while desk.trainer.running or (desk.options.retrain_every and not desk.labels_to_go()):
        sleep(0.2)
    sleep(2)  # the queue and the learning curve
    browser.visit(address)
    ready = 'document.body.textContent.includes("oppose it")'
    while not browser.value(ready):
        sleep(0.1)


def save(browser: Chromium, name: str, *, whole: bool = True) -> None:
    """Write the page, or what the window shows of it."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_bytes(browser.picture(whole=whole))
    print(f"wrote docs/desk/{name}")


def label(browser: Chromium, folder: Path) -> None:
    """A dozen labels, a model, light and dark, at a desk and on a phone."""
    nodes = open_nodes(ACCOUNTS, {"label": "kind", "drop": ["status"]})
    options = DeskOptions(folder=folder / "model", time_limit=LIMIT)
    desk = Desk(nodes, LabelFile(folder / "labels.sqlite", nodes.column), options)
    desk.start()
    with serving(desk) as access:
        browser.visit(access.address)
        press_best(browser, LABELS)
        settle(browser, desk, access.address)
        save(browser, "label.png")
        browser.look(dark=True)
        browser.resize(390, 1000)
        save(browser, "phone.png", whole=False)


def triage(browser: Chromium, folder: Path) -> None:
    """The suspects of a saved model."""
    model = eg.TableModel(eg.Auto(time_limit=LIMIT)).fit(ACCOUNTS, label="kind", drop=["status"])
    nodes, rows = open_for_model(model, ACCOUNTS, None, {})
    file = LabelFile(folder / "triage.sqlite", nodes.column)
    options = DeskOptions(folder=folder / "none")
    desk = Triage(nodes, file, options, model.method_, "fraud", rows)
    desk.start()
    browser.look(dark=False)
    browser.resize(1280, 900)
    with serving(desk) as access:
        browser.visit(access.address)
        for key in "1112":
            browser.press(key, loads=True)
        settle(browser, desk, access.address)
        save(browser, "triage.png")


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Chromium(folder / "profile")
        browser.look(dark=False)
        browser.resize(1280, 900)
        try:
            label(browser, folder)
            triage(browser, folder)
        finally:
            browser.close()
    record("desk")


if __name__ == "__main__":
    main()
