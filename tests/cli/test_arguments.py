import pytest

from evengraph.cli.options import make_protocol, parse_methods, parse_seconds, parse_settings
from evengraph.methods import METHODS
from evengraph.splits import Natural, Step


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("10m", 600), (" 2 h ", 7200)]
)
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "5d", "m", "1e3", "inf"])
def test_durations_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="90, 10m or 2h"):
        parse_seconds(text)


def test_methods():
    assert parse_methods("gcn") == ["gcn"]
    assert parse_methods("lte4g, gcn,lte4g") == ["lte4g", "gcn"]
    assert parse_methods("all") == list(METHODS)
    with pytest.raises(ValueError, match="Did you mean lte4g"):
        parse_methods("gcn,lte4")


def test_settings_go_to_the_methods_that_have_them():
    params, sentences = parse_settings(["gcn", "reweight"], ["scale=2", "hidden=8"])
    assert params == {"gcn": {"hidden": 8}, "reweight": {"scale": 2, "hidden": 8}}
    assert sentences == ["scale=2 applied to Re-weight only (GCN has no such parameter)."]
    with pytest.raises(ValueError, match="alpha"):
        parse_settings(["gcn", "reweight"], ["alpha=2"])


def test_a_setting_may_be_for_one_method():
    names = ["gcn", "iceberg"]
    params, sentences = parse_settings(names, ["IceBerg.learning_rate=0.1", "hidden=8"])
    assert params == {"gcn": {"hidden": 8}, "iceberg": {"hidden": 8, "learning_rate": 0.1}}
    assert sentences == ["learning_rate=0.1 applied to IceBerg only."]
    both = ["iceberg.hidden=4", "hidden=8"]  # what is set for one method wins, in any order
    assert parse_settings(names, both)[0] == {"gcn": {"hidden": 8}, "iceberg": {"hidden": 4}}
    assert parse_settings(["gcn"], [" gcn.hidden = 8"]) == ({"gcn": {"hidden": 8}}, [])
    for wrong in ("smote.hidden=8", "nonsense.hidden=8"):
        with pytest.raises(ValueError, match="method"):
            parse_settings(names, [wrong])


def test_parameters_of_candidates_are_set_elsewhere():
    advice = r"run --method boosting --set leaves=7, or compare --set boosting\.leaves=7\."
    with pytest.raises(ValueError, match=advice):
        parse_settings(["auto"], ["boosting.leaves=7"])
    with pytest.raises(ValueError, match=r"methods to run: gcn\.$"):
        parse_settings(["gcn"], ["boosting.leaves=7"])


def test_protocols():
    assert make_protocol("step", {"minority": 2}) == Step(minority=2)
    assert make_protocol("natural", {}) == Natural()
    with pytest.raises(ValueError, match="Did you mean step"):
        make_protocol("steps", {})
    with pytest.raises(ValueError, match=r"natural has no --ratio; its options: --train, --val"):
        make_protocol("natural", {"ratio": 0.1})
