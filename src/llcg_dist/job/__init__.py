"""One job, from its settings to its records: the round loop, server, machine, handshake, process, checkpoints."""
