"""How the values of one column become numbers: fitted on rows of training domains, then the same for each row."""
