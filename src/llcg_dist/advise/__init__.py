"""`llcg advise`: whether several machines pay on a graph, and with which settings, by a short pilot on this host."""
