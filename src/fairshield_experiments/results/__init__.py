"""Tables, figures and the report: pure functions of the rows that the experiments left."""
