"""What crosses the network, and nothing else: typed messages, a ledger of their bytes, two transports."""
