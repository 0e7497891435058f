"""Seeds -> mini-batch: one rectangular CSR block per message-passing layer, and the rows of features that it reads."""
