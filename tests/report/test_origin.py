from evengraph.report.page import (
    Link,
    changed_params,
    command_block,
    copy_script,
    origin_section,
    page_links,
)


def test_all_parts(parse):
    content = {"command": "evengraph run cora", "commands": ["evengraph compare cora"]}
    links = [Link("a b/report.html", "GCN")]
    tree = parse(origin_section(content, links, changed={"": {"patience": 100, "engine": None}}))
    assert [node.text for node in tree.all("code")] == [
        "evengraph run cora",
        "evengraph compare cora",
    ]
    assert tree.all("a")[0].attributes["href"] == "a%20b/report.html"
    assert "patience = 100, engine = –" in tree.text
    assert parse(page_links(links)).all("nav")[0].text == "GCN"


def test_nothing_to_say():
    assert origin_section({}) == ""
    assert page_links([]) == ""
    assert origin_section({"command": 3, "commands": [None]}) == ""


def test_every_parameter_may_have_its_default(parse):
    assert "every parameter has its default" in parse(origin_section({}, changed={"": {}})).text
    tree = parse(origin_section({}, changed={"GCN": {}, "MLP": {"hidden": 8}}))
    assert [node.text for node in tree.all("dd")] == ["none", "hidden = 8"]


def test_which_parameters_were_changed():
    assert changed_params({"fields": {"a": 1, "b": 2}, "changed": ["b"]}) == {"b": 2}
    assert changed_params({"fields": {"a": 1}}) is None


def test_a_button_stays_hidden_without_its_script(parse):
    (button,) = parse(command_block("a <b>")).all("button")
    assert "hidden" in button.attributes
    assert copy_script({}) == ""
    assert "clipboard" in copy_script({"commands": ["x"]})
