"""`llcg train -m`: one job for each combination of settings."""
