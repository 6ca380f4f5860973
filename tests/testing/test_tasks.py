"""The tasks are what their names say."""

import torch

from evengraph.testing.tasks import VALID_TASKS, small_task, task_with, with_graph


def test_small_task_has_one_small_class():
    assert small_task().class_counts.tolist() == [10, 10, 2]
    assert small_task(num_classes=2).num_classes == 2


def test_task_with_has_the_class_counts_asked_for():
    task = task_with(9, 4, 1)
    assert task.class_counts.tolist() == [9, 4, 1]
    assert int(task.val.sum()) == 15
    assert not (task.train & task.val).any()


def test_valid_tasks_are_what_they_are_called():
    tasks = {name: edit(small_task()) for name, edit in VALID_TASKS.items()}
    assert tasks["one_training_node_in_a_class"].class_counts.tolist() == [10, 10, 1]
    assert tasks["one_training_node_in_every_class"].class_counts.tolist() == [1, 1, 1]
    for label in range(3):
        task = tasks[f"class_{label}_missing_from_validation"]
        assert label not in task.graph.y[task.val]
    for label in (0, 2):
        task = tasks[f"isolated_training_nodes_of_class_{label}"]
        nodes = (task.train & (task.graph.y == label)).nonzero()
        assert len(nodes)
        assert not torch.isin(task.graph.edge_index, nodes).any()
        assert task.graph.num_edges > 0
    node = tasks["an_isolated_training_node"].train.nonzero()[0]
    assert node not in tasks["an_isolated_training_node"].graph.edge_index
    assert tasks["no_edges"].graph.num_edges == 0
    assert (tasks["all_nodes_labelled"].train | tasks["all_nodes_labelled"].val).all()
    for name, task in tasks.items():
        assert task.class_counts.min() > 0, name
        assert task.val.any(), name


def test_with_graph_leaves_the_task_alone():
    task = small_task()
    other = with_graph(task, y=torch.zeros_like(task.graph.y))
    assert not other.graph.y.any()
    assert task.graph.y.any()
