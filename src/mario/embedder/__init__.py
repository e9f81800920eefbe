"""A graph of your own in, a model to keep out: what is trained is picked from the graph, and the reasons are kept."""
