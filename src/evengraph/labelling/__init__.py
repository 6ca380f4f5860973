"""Which nodes to label next, why, and what more labels would bring."""

from evengraph.labelling.learning_curve import LearningCurve as LearningCurve
from evengraph.labelling.learning_curve import learning_curve as learning_curve
from evengraph.labelling.pool import Pool as Pool
from evengraph.labelling.strategies import STRATEGIES as STRATEGIES
from evengraph.labelling.strategies import Strategy as Strategy
from evengraph.labelling.suggestions import Suggestion as Suggestion
from evengraph.labelling.suggestions import Suggestions as Suggestions
from evengraph.labelling.suggestions import suggest as suggest
