"""Tables of the report: each is a pure function of the results.

:mod:`.models` is about data and classifiers, :mod:`.paper` about the paper's simulations,
:mod:`.claims` about its words, :mod:`.trainings` about chance, :mod:`.more` about what the paper
could not show.
"""
