"""Fraud among accounts, from two CSV files: train with a cost, then score next month's accounts.

python examples/accounts.py             under a minute on two cores
python examples/accounts.py --epochs 5  a quick try
python examples/accounts.py --write     write examples/accounts and examples/next-month again
"""

import argparse
import random
from pathlib import Path

import evengraph as eg
from evengraph.metrics.decisions import Costs

HERE = Path(__file__).parent
KNOWN, NEW = HERE / "accounts", HERE / "next-month"


def make_accounts(count, draw):
    """One account in twelve is a fraud; three of five have been checked."""
    accounts = []
    for _ in range(count):
        fraud, checked = draw.random() < 1 / 12, draw.random() < 0.6
        # Accounts are blocked once somebody has found the fraud: the leak that `inspect` finds.
        blocked = draw.random() < (0.9 if fraud and checked else 0.01)
        cells = [
            draw.choice(["de", "fr", "pl"]) if draw.random() < 0.95 else "",
            draw.choices(["android", "ios", "web"], [3, 3, 5] if fraud else [4, 4, 2])[0],
            f"{draw.lognormvariate(2.4 if fraud else 2, 0.7):.0f}",
            f"{draw.lognormvariate(4.2 if fraud else 3.5, 0.8):.2f}" if draw.random() < 0.9 else "",
            f"{draw.betavariate(3 if fraud else 2, 6):.2f}",
            "blocked" if blocked else "active",
        ]
        accounts.append((fraud, checked, cells))
    return accounts


def make_payments(accounts, payers, draw):
    """Each payer pays three accounts; a fraud pays another fraud more often than others do."""
    groups = [
        [place for place, (fraud, *_) in enumerate(accounts) if fraud == wanted]
        for wanted in (False, True)
    ]
    for payer in payers:
        share = 0.45 if accounts[payer][0] else 0.05  # so that frauds are paid as often as others
        paid = {draw.choice(groups[draw.random() < share]) for _ in range(3)}
        yield from ((payer, other) for other in sorted(paid - {payer}))


def write_tables(known=KNOWN, new=NEW, *, count=5000, more=400, seed=0):
    """Write the accounts and payments of today, and those that next month adds."""
    draw = random.Random(seed)
    accounts = make_accounts(count, draw)
    _write(known, accounts, range(count), make_payments(accounts, range(count), draw), labels=True)
    accounts += make_accounts(more, draw)
    added = range(count, count + more)
    sent, received = (list(make_payments(accounts, added, draw)) for _ in range(2))
    payments = [*sent, *((other, payer) for payer, other in received)]
    _write(new, accounts, added, payments, labels=False)


def _write(folder, accounts, places, payments, *, labels):
    head = "id,country,device,payments,amount,night,status"
    rows = [f"{head},kind" if labels else head]
    for place in places:
        fraud, checked, cells = accounts[place]
        kind = ("fraud" if fraud else "honest") if checked else ""
        rows.append(",".join([f"a{place}", *cells, *([kind] if labels else [])]))
    pairs = ["source,target", *(f"a{payer},a{paid}" for payer, paid in payments)]
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(pairs) + "\n", encoding="utf-8")


def main(arguments=None):
    """Train on today's tables and list the accounts of next month that look most like fraud."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300, help="maximum number of epochs")
    parser.add_argument("--write", action="store_true", help="write the tables again")
    options = parser.parse_args(arguments)
    if options.write:
        write_tables()
        return
    # A missed fraud costs 10 times as much as a false alarm.
    model = eg.TableModel(eg.Auto(max_epochs=options.epochs), costs=Costs(miss=10))
    model.fit(KNOWN, label="kind", drop=["status"])
    print(*model.notes, sep="\n")
    print(f"average precision: {model.evaluate()['positive_average_precision']:.0f}%")

    scored = model.predict(NEW, known=KNOWN)
    ranked = scored.sort_values("p_fraud", ascending=False)
    print(ranked[["id", "p_fraud", "flagged"]].head(10).to_string(index=False))


if __name__ == "__main__":
    main()
