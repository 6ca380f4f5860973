"""Tables, figures and the page of a store of runs."""
