"""Many runs: settings, one run in its folder, comparisons, the paper's figures as data, statistics."""
