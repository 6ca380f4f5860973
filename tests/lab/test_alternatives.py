import pytest

from evengraph.lab.results import alternative_text
from evengraph.lab.tables import markdown


def test_a_figure_is_described_and_not_just_named(comparison):
    text = alternative_text(comparison, f"{comparison.name}-comparison")
    assert text.startswith("Comparison: balanced accuracy of 4 methods in 3 settings")
    assert "best on average: Uni-GNN" in text
    assert "memory" in alternative_text(comparison, f"{comparison.name}-cost")


@pytest.mark.parametrize("kind", ["recall", "confusion", "cost", "map", "ablation", "sensitivity"])
def test_every_kind_has_a_sentence_that_markdown_can_hold(comparison, kind):
    text = alternative_text(comparison, f"{comparison.name}-{kind}")
    assert len(text.split()) > 5
    assert not set("[]\n") & set(text)
    shown = markdown(comparison, [f"{comparison.name}-{kind}"])
    assert f"![{text}]({comparison.name}-{kind}.svg)" in shown
