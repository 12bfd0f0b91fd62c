"""Tables, figures and the report: pure functions of the rows of the experiments."""
