"""torchrun's elastic rendezvous over the store of a job, which its launcher opens; what it decodes is allow-listed.

torch keeps the state of a rendezvous pickled in the store, and unpickling runs what the pickle names. So a pickle is
first read by an unpickler that knows only what a state is made of, also where the store is not sealed.
"""

import io
import pickle
import pickletools
from base64 import b64decode
from datetime import timedelta
from typing import Any

from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout

from llcg_dist.comm.job_board import REFUSED
from llcg_dist.errors import UserError

BACKEND = "llcg"
"""The name of this rendezvous in torchrun's registry."""

_DYNAMIC = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
_PARTS_OF_A_STATE = {
    (_DYNAMIC, "_RendezvousState"), (_DYNAMIC, "_NodeDesc"), ("datetime", "datetime"), ("datetime", "timezone"),
    ("datetime", "timedelta"),
}  # fmt: skip
"""(module, name) of all that the pickle of a rendezvous state may refer to."""
_OPCODES = {
    "PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET", "STACK_GLOBAL", "NEWOBJ", "REDUCE", "BUILD",
    "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "SHORT_BINBYTES", "SHORT_BINUNICODE",
    "BINUNICODE", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "EMPTY_DICT", "SETITEM", "SETITEMS",
    "EMPTY_SET", "ADDITEMS",
}  # fmt: skip
"""What pickle itself uses to write a state. Of the others some allocate as much memory as they are asked to."""


def register() -> None:
    """Makes the rendezvous known to torchrun, under the name BACKEND."""
    rendezvous_handler_registry.register(BACKEND, _create_handler)


class _StateReader(pickle.Unpickler):
    """Unpickles a rendezvous state and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PARTS_OF_A_STATE:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}")
        return super().find_class(module, name)


def require_state(pickled: bytes) -> None:
    """Raises torch's RendezvousStateError where this is not the pickle of a rendezvous state."""
    try:
        strange = {opcode.name for opcode, _, _ in pickletools.genops(pickled)} - _OPCODES
        if strange:
            raise pickle.UnpicklingError(f"it has the opcode {min(strange)}")
        state = _StateReader(io.BytesIO(pickled)).load()
        reason = "" if type(state).__name__ == "_RendezvousState" else f"it is a {type(state).__name__}"
    except Exception as error:  # a damaged pickle can raise almost anything
        reason = f"{type(error).__name__}: {error}"
    if reason:
        raise RendezvousStateError(f"what the job's store holds is no state of its rendezvous ({reason})")


class Backend(C10dRendezvousBackend):
    """torch's c10d rendezvous backend, which hands on what has been read as a state."""

    name = BACKEND

    def _decode_state(self, base64_state: bytes) -> Any:
        if base64_state != self._NULL_SENTINEL.encode():
            try:
                decoded = b64decode(base64_state, validate=True)
            except ValueError:
                decoded = b""
            require_state(decoded)
        return super()._decode_state(base64_state)


class _Handler(DynamicRendezvousHandler):
    """torch's elastic rendezvous, except that a job which its ranks have refused is not restarted."""

    def next_rendezvous(self) -> RendezvousInfo:
        """Raises a UserError where the ranks have found a user's mistake: no restart of the job could work."""
        if self._store.check([REFUSED]):
            raise UserError(self._store.get(REFUSED).decode())
        return super().next_rendezvous()


def _create_handler(parameters: RendezvousParameters) -> RendezvousHandler:
    """The handler for torchrun's registry, over the store in `parameters.config`."""
    store = parameters.config["store"]
    handler = _Handler.from_backend(
        parameters.run_id,
        store,
        Backend(store, parameters.run_id),
        parameters.min_nodes,
        parameters.max_nodes,
        parameters.local_addr,
        RendezvousTimeout(join=timedelta(seconds=parameters.config["join_timeout"])),
    )
    # As if the handler had created a store for the ranks already: its own would listen on every interface.
    handler._shared_tcp_store_server = store
    handler._bootstrap_store_info = RendezvousStoreInfo(*parameters.config["address"])
    return handler
