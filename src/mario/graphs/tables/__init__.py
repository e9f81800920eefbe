"""Tables in, a graph out: files of nodes and edges, columns that become features, and ids that come back unchanged."""
