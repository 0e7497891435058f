"""Silences what torch logs about failed ranks and lost connections: the launcher reports these itself, in one line."""

import logging
import os


def silence_torch_store() -> None:
    """Sets torch's C++ log level to ERROR, unless the environment sets it. To be called before torch is imported.

    On a lost connection torch's store otherwise logs a stack trace of many lines.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def silence_torchrun() -> None:
    """Raises the level of torchrun's loggers, one by one: each has a level of its own, which hides its parent's."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("torch.distributed", "torch.multiprocessing")):
            logging.getLogger(name).setLevel(logging.CRITICAL)
