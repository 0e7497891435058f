"""Neighbour sampling: seeds -> mini-batch of features, labels and one CSR block per message-passing layer."""
