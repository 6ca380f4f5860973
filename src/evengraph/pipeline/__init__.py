"""From data to results and models: one path opens, splits, fits, scores, selects and saves.

`TableModel` fits and predicts a user's tables or graph, `compare` chooses a method. A `Method` fits
a `Task` where the split is yours, `evaluate` scores it; `NodeClassifier` is for scikit-learn.
"""
