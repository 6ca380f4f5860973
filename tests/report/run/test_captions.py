import pytest

from evengraph.report import result as captions


@pytest.mark.parametrize(
    ("imbalance", "expected"),
    [
        ({"name": "step", "minority": 1, "ratio": 0.05}, "step imbalance: 1 minority class at 5%"),
        ({"name": "natural"}, "natural class imbalance"),
        (
            {"name": "bytime", "train": 0.6, "val": 0.2},
            "natural class imbalance, split by time",
        ),
        (
            {"name": "publicstep", "minority": 3, "ratio": 0.1, "normalise_features": True},
            "step imbalance on the public split: 3 minority classes at 10%",
        ),
        (
            {"name": "longtail", "ratio": 0.01},
            "long-tailed imbalance: the smallest class at 1% of the largest",
        ),
        ({"name": "mine", "a": 1}, "mine imbalance (a 1)"),
        (None, "imbalance not recorded"),
    ],
)
def test_split_protocol(imbalance, expected):
    assert captions.imbalance({"imbalance": imbalance}) == expected


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-01-05T13:07:00+01:00", "5 January 2026, 12:07 UTC"),
        ("2026-01-05T13:07:00", "5 January 2026, 13:07"),
        ("yesterday", "yesterday"),
        (None, None),
    ],
)
def test_timestamp(created, expected):
    assert captions.timestamp(created) == expected


def test_many_seeds_are_shortened():
    assert captions.seeds({"seeds": [5]}) == "seed 5"
    assert captions.seeds({"seeds": list(range(20))}) == "seeds 0, 1, 2, …, 19"
    assert captions.seeds({}) == "no seed"


def test_duration():
    runs = [{"seconds": 60.0}, {"seconds": 45.0}, {"seconds": None}]
    assert captions.facts({"runs": runs}) == [("1.8 min", "of training")]
    assert captions.facts({"runs": runs[1:]}) == [("45.0 s", "of training")]
