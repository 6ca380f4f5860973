"""Labelling: which nodes to label next and why, what more labels would bring, a desk to label at."""

from evengraph.desk.learning_curve import LearningCurve as LearningCurve
from evengraph.desk.learning_curve import learning_curve as learning_curve
from evengraph.desk.strategies import STRATEGIES as STRATEGIES
from evengraph.desk.strategies import Strategy as Strategy
from evengraph.desk.suggestions import Pool as Pool
from evengraph.desk.suggestions import Suggestion as Suggestion
from evengraph.desk.suggestions import Suggestions as Suggestions
from evengraph.desk.suggestions import suggest as suggest
