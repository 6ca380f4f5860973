"""Which nodes to label next and why, what more labels would bring, and a desk to label at."""

from typing import TYPE_CHECKING

from evengraph.core.lazy import lazy

if TYPE_CHECKING:
    from evengraph.desk.curve import LearningCurve as LearningCurve
    from evengraph.desk.curve import learning_curve as learning_curve
    from evengraph.desk.label_file import read_answers as read_answers
    from evengraph.desk.strategies import STRATEGIES as STRATEGIES
    from evengraph.desk.strategies import Strategy as Strategy
    from evengraph.desk.suggestions import Pool as Pool
    from evengraph.desk.suggestions import Suggestion as Suggestion
    from evengraph.desk.suggestions import Suggestions as Suggestions
    from evengraph.desk.suggestions import suggest as suggest
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "curve": ("LearningCurve", "learning_curve"),
            "label_file": ("read_answers",),
            "strategies": ("STRATEGIES", "Strategy"),
            "suggestions": ("Pool", "Suggestion", "Suggestions", "suggest"),
        },
    )
