"""Studies: tables and figures as data, and the runs they take."""
