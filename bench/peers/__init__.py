"""The peers' own programs on the graph and links of bench/slow_network.py, beside ours: `python -m bench.peers`."""
