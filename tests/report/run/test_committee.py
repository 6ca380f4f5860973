"""Sections on what was selected and on the agreement of a committee."""

from evengraph.report import render_page
from evengraph.report.run_page import agreement_section, summary_section

BANDS = [{"from": 0.5, "nodes": 10, "correct": 4}, {"from": 0.95, "nodes": 90, "correct": 81}]


def test_a_single_run_is_told_in_its_lines(parse):
    tree = parse(summary_section({"runs": [{"seed": 5, "summary": ["Chose A.", "Rejected: B."]}]}))
    assert [node.text for node in tree.all("p")] == ["Chose A.", "Rejected: B."]


def test_several_runs_are_told_seed_by_seed(parse):
    runs = [{"seed": seed, "summary": ["Chose A.", "Rejected: B."]} for seed in (5, 6)]
    tree = parse(summary_section({"runs": runs}))
    expected = [f"Seed {seed}: Chose A. Rejected: B." for seed in (5, 6)]
    assert [node.text for node in tree.all("p")] == expected


def test_of_several_runs_what_was_rejected_is_folded(parse):
    lines = ["Chose A.", "Rejected: B.", "The graph helps."]
    tree = parse(summary_section({"runs": [{"seed": 5, "summary": lines}, {"seed": 6}]}))
    assert tree.all("p")[0].text == "Seed 5: Chose A. The graph helps."
    (folded,) = tree.all("details")
    assert [node.text for node in folded.all("p")] == ["Seed 5: Rejected: B."]


def test_bands_are_summed_over_seeds_and_the_most_agreement_comes_first(parse):
    more = [{"from": 0.5, "nodes": 10, "correct": 1}, {"from": 0.0, "nodes": 5, "correct": 0}]
    tree = parse(agreement_section({"runs": [{"agreement": BANDS}, {"agreement": more}]}))
    names = [node.text for node in tree.all("span", "name")][1:]
    assert names == ["95% or more agree", "50 to 95% agree", "below 50% agree"]
    titles = [node.text for node in tree.all("title")]
    assert "50 to 95% agree: 20 test nodes" in titles
    assert "50 to 95% agree: 25.0% correct" in titles
    assert "95% or more agree: 90.0% correct" in titles
    overall = 100 * (81 + 4 + 1) / 115
    assert tree.all("line", "reference")[0].attributes["x1"] == f"{overall:.2f}%"


def test_without_a_committee_or_a_summary_there_is_no_section(result):
    assert summary_section(result) == agreement_section(result) == ""
    text = render_page(result)
    assert "Agreement and accuracy" not in text
    assert "What was selected" not in text


def test_both_are_on_the_page(result):
    for run in result["runs"]:
        run |= {"summary": ["Chose <A>."], "agreement": BANDS}
    text = render_page(result)
    assert "Agreement and accuracy" in text
    assert "Chose &lt;A&gt;." in text


def test_nonsense_is_no_error():
    runs = [{"agreement": [{"from": "x"}, 3, {"nodes": 0}], "summary": [3, None]}, {"summary": 7}]
    assert agreement_section({"runs": runs}) == summary_section({"runs": runs}) == ""
