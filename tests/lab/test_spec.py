"""Experiment files: what they ask for, mistakes with their place, limits."""

from collections import Counter
from dataclasses import asdict

import pytest

from evengraph.lab import spec as spec_limits
from evengraph.lab.reproduce import Plan
from evengraph.lab.sources import (
    BEYOND,
    EXPERIMENTS,
    expand,
    source,
)
from evengraph.lab.spec import check_keys, read_spec
from evengraph.methods import METHODS
from evengraph.pipeline.parameters import PAPER, preset_for
from evengraph.splits import Step
from tiny_experiments import entry, spec_of

SETUPS = {"table1": 12, "table2": 2, "table3": 4, "figure2": 1}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_packaged_experiments_ask_for_the_whole_grid_with_the_papers_patience(name):
    spec = read_spec(name)
    assert (spec.name, spec.seeds) == (name, [5, 6, 7])
    assert len({setup.name for setup in spec.setups}) == len(spec.setups) == SETUPS[name]
    jobs = [job for job in Plan(spec, []).missing() if job.method == "unignn"]
    assert len({job.key for job in jobs if job.seed == 5}) == 40 * SETUPS[name]
    assert Counter(job.seed for job in jobs) == dict.fromkeys((5, 6, 7), 40 * SETUPS[name])
    for every in (Plan(spec, []).jobs(), Plan(read_spec(name, quick=True), []).jobs()):
        assert {job.method_fields["patience"] for job in every} == {PAPER["patience"]} == {1000}
    if name in ("table1", "table2"):
        assert [entry.name for entry in spec.entries] == list(METHODS)[:9]


@pytest.mark.parametrize(("name", "setups"), [("publicstep", 3), ("natural", 4)])
def test_experiments_beyond_the_paper_hold_the_methods_that_were_run(name, setups):
    spec, quick = read_spec(name), read_spec(name, quick=True)
    assert (len(spec.seeds), len(spec.setups)) == (10, setups)
    assert len({entry.name for entry in spec.entries}) >= 24  # a new method need not be there
    assert (len(quick.seeds), len(quick.setups)) == (1, 1)


def test_what_a_file_says_is_what_is_run(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'title = "Own"\ndraws = "ablation"\nseeds = "5-6"\n'
        '[[setup]]\ndataset = "toy"\nminority = 2\n'
        '[[setup]]\ndataset = "toy"\nimbalance = "natural"\ntrain = 0.2\n'
        '[[method]]\nname = "GraphENS"\nmore_seeds = [8, 9, 8]\n'
        '[[method]]\nname = "gcn"\nlabel = "other"\nlike = "GraphENS"\nfields = { hidden = 8 }\n'
    )
    spec = read_spec(str(path))
    assert (spec.name, spec.title, spec.draws, spec.seeds) == ("own", "Own", "ablation", [5, 6])
    assert spec.setups[0].fields == asdict(Step(minority=2))
    assert [setup.name for setup in spec.setups] == ["toy-step-2-0.1", "toy-natural-0.2"]
    first, second = spec.entries
    assert (first.label, first.name, first.more_seeds) == ("GraphENS", "graphens", [8, 9])
    assert (second.label, second.like, second.fields) == ("other", "GraphENS", {"hidden": 8})


def test_a_file_needs_little(tmp_path):
    path = tmp_path / "least.toml"
    path.write_text('[[setup]]\ndataset = "toy"\n[[method]]\nname = "gcn"\n')
    spec = read_spec(str(path))
    assert (spec.seeds, spec.draws, spec.title) == ([5, 6, 7], "comparison", "least")
    assert (spec.entries[0].label, spec.setups[0].imbalance) == ("GCN", "step")


def test_fields_of_all_methods(tmp_path):
    path = tmp_path / "shared.toml"
    setup, shared = '[[setup]]\ndataset = "toy"\n', "[fields]\npatience = 7\nhidden = 8\n"
    own = '[[method]]\nname = "mlp"\nfields.hidden = 16\n'
    path.write_text(f'{shared}{setup}[[method]]\nname = "gcn"\n{own}')
    jobs = Plan(read_spec(str(path)), []).missing()
    assert {(job.method, job.method_fields["hidden"]) for job in jobs} == {("gcn", 8), ("mlp", 16)}
    assert {job.method_fields["patience"] for job in jobs} == {7}
    other = '[[method]]\nname = "gcn"\nlabel = "B"\nlike = "GCN"\n'
    short = '[[method]]\nname = "gcn"\nfields.patience = 5\n'
    path.write_text(f"{shared}{setup}{short}{other}")
    jobs = Plan(read_spec(str(path)), []).missing()
    assert {job.method_fields["patience"] for job in jobs} == {5}  # what it is like counts more
    path.write_text(f'{shared}{setup}[[method]]\nname = "boosting"\n')
    with pytest.raises(ValueError, match=r"fields: .*hidden"):
        read_spec(str(path))


BASE = """
# An experiment.
title = "Own"
draws = "comparison"
seeds = "5-7"

[[setup]]
dataset = "toy"
imbalance = "step"
ratio = 0.1

[[setup]]
dataset = "toy"
imbalance = "longtail"
ratio = 0.1

[[method]]
name = "gcn"

[[method]]
name = "unignn"
label = "whole"
fields = { alpha = 2 }
grid.threshold = [0.5, 0.7]
grid.clusters_per_class = [3, 4]

[[method]]
name = "unignn"
label = "part"
like = "whole"
vary = { alpha = [1, 2, 3] }

[quick]
seeds = [5]
"""

SECOND_SETUP = 'imbalance = "longtail"\nratio = 0.1'

GRID = "grid.threshold = [0.5, 0.7]"

CLUSTERS = "grid.clusters_per_class = [3, 4]"

VARY = "vary = { alpha = [1, 2, 3] }"

WHOLE_SETUP = f'[[setup]]\ndataset = "toy"\n{SECOND_SETUP}'

MISTAKES = {
    "top key": ('seeds = "5-7"', 'seed = "5-7"  # here', ["seed is unknown"]),
    "draws": ('draws = "comparison"', 'draws = "tables"  # here', ["tables", "ablation"]),
    "seeds that fall": ('seeds = "5-7"', 'seeds = "7-5"  # here', ["upwards", "7-5"]),
    "seeds below zero": ('seeds = "5-7"', "seeds = [5, -1]  # here", ["[5, 6, 7]"]),
    "broken seeds": ('seeds = "5-7"', "seeds = [5.5]  # here", ["[5, 6, 7]"]),
    "one seed": ('seeds = "5-7"', "seeds = 5  # here", ["[5, 6, 7]"]),
    "dataset": ('"toy"\nimbalance = "longtail"', '"tooy"# here\nimbalance = "longtail"', ["toy"]),
    "no dataset": (
        WHOLE_SETUP,
        f"[[setup]] # here\n{SECOND_SETUP}",
        ["dataset must be a name"],
    ),
    "imbalance": ('"longtail"', '"longtails"  # here', ["longtails", "longtail", "natural"]),
    "field of another protocol": (
        SECOND_SETUP,
        f"{SECOND_SETUP}\nminority = 3  # here",
        ["parameter of longtail", "minority", "ratio"],
    ),
    "ratio": (SECOND_SETUP, 'imbalance = "longtail"\nratio = 2  # here', ["ratio", "(0, 1]", "2"]),
    "two fields that do not go together": (
        WHOLE_SETUP,
        '[[setup]]  # here\ndataset = "toy"\nimbalance = "natural"\ntrain = 0.6\nval = 0.5',
        ["below 1"],
    ),
    "a word for a number": (
        SECOND_SETUP,
        'imbalance = "longtail"\nratio = "a tenth"  # here',
        ["ratio must be a number"],
    ),
    "method": ('name = "gcn"', 'name = "gnc"  # here', ["gnc", "gcn", "lte4g"]),
    "key of a method": (VARY, f"{VARY}\nvaries = 3  # here", ["method[2].varies is unknown"]),
    "field": ("fields = { alpha = 2 }", "fields = { alfa = 2 }  # here", ["alfa", "alpha"]),
    "field of the grid": (GRID, "grid.treshold = [0.5]  # here", ["treshold", "threshold"]),
    "value of the grid": (
        CLUSTERS,
        "grid.clusters_per_class = [3, 0]  # here",
        ["clusters_per_class", "at least 1"],
    ),
    "value that varies": (VARY, "vary = { alpha = [1, 2.5] }  # here", ["a whole number", "2.5"]),
    "grid without a list": (GRID, "grid.threshold = 0.5  # here", ["threshold", "array"]),
    "grid of nothing": (GRID, "grid.threshold = []  # here", ["threshold", "list of values"]),
    "fields in a list": (
        "fields = { alpha = 2 }",
        "fields = [1]  # here",
        ["fields must be an object"],
    ),
    "grid and vary": (CLUSTERS, f"{CLUSTERS}\n{VARY}  # here", ["vary excludes grid"]),
    "more seeds": (VARY, f'{VARY}\nmore_seeds = "9-8"  # here', ["upwards", "9-8"]),
    "no setup": (BASE, '# here\n[[method]]\nname = "gcn"\n', ["setup is missing"]),
    "one setup": (BASE, '[setup]  # here\ndataset = "toy"\n', ["setup must be"]),
    "same key elsewhere": (
        "seeds = [5]",
        'seeds = [5]\n[[setup]]\ndataset = "toy"\nratio = 7  # here',
        ["ratio", "7"],
    ),
    "like": ('like = "whole"', 'like = "hole"  # here', ["hole", "whole", "above"]),
    "label": (
        'label = "part"\nlike = "whole"',
        'label = "whole"  # here',
        ["two methods", "'whole'"],
    ),
    "broken TOML": ('label = "part"', 'label = "part  # here', []),
    "no seeds": ('seeds = "5-7"', "seeds = []  # here", ["seeds"]),
    "large seeds": ('seeds = "5-7"', "seeds = [5, 4294967296]  # here", ["2^32"]),
    "vary two": (VARY, "vary = { alpha = [1, 2], threshold = [0.5] }  # here", ["vary"]),
    "presets in words": ('like = "whole"', 'presets = "no"  # here', ["presets", "boolean"]),
    "like a method with other fields": (
        'name = "gcn"\n',
        'name = "gcn"\n[[method]]\nname = "unignn"\nlabel = "u"\ngrid.alpha = [1, 2]\n'
        '[[method]]\nname = "gcn"\nlabel = "g"\nlike = "u"  # here\n',
        ["alpha"],
    ),
    "setups that are no tables": (
        BASE,
        'setup = ["toy"]  # here\n[[method]]\nname = "gcn"\n',
        ["setup"],
    ),
}


def refusal(tmp_path, old, new, quick=False):
    assert old in BASE
    text = BASE.replace(old, new, 1)
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"own\.toml") as error:
        read_spec(str(path), quick=quick)
    (message,) = str(error.value).splitlines()
    assert message.startswith(f"{path}: ")
    assert message.endswith(".")
    return message


@pytest.mark.parametrize(
    ("old", "new", "words"), [pytest.param(*parts, id=name) for name, parts in MISTAKES.items()]
)
def test_a_mistake_is_told_with_its_place(old, new, words, tmp_path):
    message = refusal(tmp_path, old, new)
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[method]]\nname = "gcn"\nlabel = 3', r"method\[1\].label must be a valid string"),
        (
            '[[method]]\nname = "gcn"\nfields = { hidden = ' + "9" * 400 + " }",
            "must be below",
        ),
        ('[[setup]]\ndataset = "toy"\nminority = 07:32:00', "a date is no value"),
        ('[[setup]]\ndataset = "toy"\nminority = true', "minority must be a whole number"),
        ("title = 3", "title must be a valid string, got 3"),
        ("seeds = [" + "9" * 5000 + "]", "Exceeds the limit"),
        ('seeds = "' + "9" * 5000 + '"', "seeds must be whole numbers below"),
        (
            'seeds = "' + "0-999," * 11 + '1"',
            "seeds must be at most 10000",
        ),
        ("title = " + "[" * 3000 + "]" * 3000, "is nested too deeply"),
        ("x" * 500 + " = 1", r"x{60} is unknown"),
    ],
)
def test_odd_values_get_one_line(text, words, tmp_path):
    plain = '[[setup]]\ndataset = "toy"\n[[method]]\nname = "mlp"\n'
    path = tmp_path / "odd.toml"
    path.write_text(plain + text if text.startswith("[[") else f"{text}\n{plain}")
    with pytest.raises(ValueError, match=words) as caught:
        read_spec(str(path))
    assert "odd.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_files_in_other_encodings(tmp_path):
    path = tmp_path / "odd.toml"
    text = 'title = "é"\n[[setup]]\ndataset = "toy"\n[[method]]\nname = "mlp"\n'
    for encoding in ("utf-16", "latin1"):
        path.write_text(text, encoding=encoding)
        with pytest.raises(ValueError, match=r"odd\.toml, line 1 is not UTF-8 text"):
            read_spec(str(path))
    path.write_text(text, encoding="utf-8-sig")
    assert read_spec(str(path)).title == "é"
    path.write_text(text + "#" * 2**20)
    with pytest.raises(ValueError, match=r"odd\.toml is larger than 1\.0 MiB"):
        read_spec(str(path))


@pytest.mark.parametrize(
    "setup",
    ['imbalance = "natural"\ntrain = 0.95\nval = 0.04', "ratio = 0.01\ntrain_per_class = 100"],
)
def test_fields_that_only_go_together_are_taken(setup, tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(f'[[setup]]\ndataset = "toy"\n{setup}\n[[method]]\nname = "gcn"\n')
    assert len(read_spec(str(path)).setups) == 1


def test_every_name_has_a_file_and_others_are_refused_in_one_line(tmp_path):
    assert all(source(name).is_file() for name in (*EXPERIMENTS, *BEYOND))
    with pytest.raises(ValueError, match=r"^There is no file .*nothing\.toml\.$"):
        read_spec(str(tmp_path / "nothing.toml"))
    with pytest.raises(ValueError, match=r"^Unknown .*'tabel1'. Did you mean table1\?") as error:
        read_spec("tabel1")
    assert all(name in str(error.value) for name in (*EXPERIMENTS, "all", "FILE.toml"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_takes_what_is_kept_instead_of_a_grid(name):
    spec = read_spec(name, quick=True)
    (setup,) = spec.setups
    assert spec.seeds == [5]
    assert not any(e.grid or e.more_seeds for e in spec.entries)
    assert len(spec.entries) == len(read_spec(name).entries)
    (whole,) = [e for e in spec.entries if e.label == "Uni-GNN"]
    kept = preset_for(setup.dataset, setup.imbalance, setup.fields, "unignn")
    assert kept
    assert Plan(spec, []).choice(setup, whole) == PAPER | kept


def test_quick_without_a_table_is_the_first_seed(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(BASE.partition("[quick]")[0])
    spec = read_spec(str(path), quick=True)
    assert (spec.seeds, len(spec.setups), len(spec.entries)) == ([5], 2, 3)
    assert spec.entries[2].vary  # what is shown stays


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("setupps = 3", ["quick.setupps is unknown"]),
        ('setups = ["cora"]', ["cora", "toy-step-3-0.1"]),
        ('setups = "longtail"', ["setups"]),
        ("methods = [3]", ["methods"]),
    ],
)
def test_mistakes_in_quick_are_told_with_their_place(new, words, tmp_path):
    message = refusal(tmp_path, "seeds = [5]", f"seeds = [5]\n{new}  # here", quick=True)
    assert all(word in message for word in words)


def test_narrowed_by_seeds_methods_and_setups():
    spec = read_spec("table1")
    assert spec.narrowed() == spec
    seeds = spec.narrowed(seeds=[30])
    assert seeds.seeds == [30]
    assert not any(e.more_seeds for e in seeds.entries)
    methods = spec.narrowed(methods=["gcn", "unignn"])
    assert [e.name for e in methods.entries] == ["gcn", "unignn"]
    assert methods.entries[0].more_seeds == spec.entries[0].more_seeds
    names = [s.name for s in spec.narrowed(setups=["cora-step-3"]).setups]
    assert names == ["cora-step-3-0.1", "cora-step-3-0.05"]
    assert len(spec.narrowed(setups=["pubmed", "step-5"]).setups) == 8
    with pytest.raises(ValueError, match=r"^No setting of table1 matches mars: cora-step-3-0.1"):
        spec.narrowed(setups=["mars"])
    with pytest.raises(ValueError, match=r"^figure2 has none of gcn, smote; it has unignn\.$"):
        read_spec("figure2").narrowed(methods=["gcn", "smote"])


def test_what_others_start_from_stays():
    entries = entry(grid={"max_epochs": [1, 2]}), entry("other", "reweight", like="GCN")
    narrowed = spec_of(*entries).narrowed(methods=["reweight"])
    assert "other" in [e.label for e in narrowed.entries]
    assert len(Plan(narrowed, []).missing()) == 4  # what the choice is made from


PLAIN = 'seeds = [1]\n[[setup]]\ndataset = "toy"\n[[method]]\nname = "gcn"\n'


def read(tmp_path, text):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    return read_spec(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".".join("a" * 5000) + " = 1\n" + PLAIN, "line 1: a key may have at most 100 parts"),
        (PLAIN + "fields = {" + "a . " * 200 + "b = 1}", "line 6: a key may have at most 100"),
        ('"%".' * 2000 + "a = 1\n" + PLAIN, "line 1: a key may have at most 10 parts in quotes"),
        ("'\u2028'.b." * 2000 + "a = 1\n" + PLAIN, "line 1: a key may have at most 100 parts"),
        (PLAIN + f"grid.hidden = [{'1,' * 10_001}]", "hidden must be at most 10000 values"),
    ],
)
def test_a_few_lines_that_ask_for_too_much(text, words, tmp_path):
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path, text)
    assert "odd.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_number_of_runs_is_limited(tmp_path, monkeypatch):
    grid = "grid = {hidden = [1, 2, 3], dropout = [0.1, 0.2]}\nmore_seeds = [2]\n"
    monkeypatch.setattr(spec_limits, "MOST_RUNS", 12)
    read(tmp_path, PLAIN + grid)
    monkeypatch.setattr(spec_limits, "MOST_RUNS", 11)
    with pytest.raises(ValueError, match="at most 11 runs, this has 12"):
        read(tmp_path, PLAIN + grid)


def test_numbers_and_sentences_are_no_keys():
    check_keys("grid.dropout = [" + "0.5, " * 500 + "]\ntitle = 'A. B. C.'")
    check_keys("  # " + "." * 500)


def test_all_is_every_experiment_of_the_paper_once():
    expanded = ["table2", "table1", "table3", "figure2", "mine.toml"]
    assert expand(["table2", "all", "mine.toml", "table2"]) == expanded
