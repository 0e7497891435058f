"""`llcg watch RUN`: a live view of a run in the terminal, from the files in its folder."""
