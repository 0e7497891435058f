"""torchrun's elastic rendezvous over the store of a job, which its launcher opens; what it decodes is allow-listed.

torch keeps the state of a rendezvous pickled in the store, and unpickling runs what the pickle names. So a pickle is
first read by an unpickler that knows only what a state is made of, also where the store is not sealed.
"""

import io
import pickle
import pickletools
import time
from base64 import b64decode
from datetime import timedelta
from typing import Any

from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousError,
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
from llcg_dist.comm.running_job import Place
from llcg_dist.errors import UserError

BACKEND = "llcg"
"""The name of this rendezvous in torchrun's registry."""

_LOOK_SECONDS = 1.0
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


def hosts_meet(backend: Backend) -> bool:
    """Whether the job's hosts meet, or are about to: not all of them are where they train."""
    found = backend.get_state()  # which has been read as a state
    state = pickle.loads(found[0]) if found else None
    if state and state.closed:
        raise RendezvousClosedError  # the launcher says that another host has ended the job
    return state is None or not state.complete or bool(state.wait_list)


class MeetAgainError(RendezvousError):
    """The job starts anew, with all hosts."""


class _Handler(DynamicRendezvousHandler):
    """torch's elastic rendezvous, except that a job which its ranks have refused is not restarted, and that hosts which
    go on without lost machines hear of others that have met without them, or have ended the job."""

    goes_on = False

    def num_nodes_waiting(self) -> int:
        waiting = super().num_nodes_waiting()
        state = self._state_holder.state
        if self.goes_on and state.closed:  # their ranks do not end by themselves
            raise RendezvousClosedError
        return waiting or int(not state.complete)  # the others took this host for gone

    def next_rendezvous(self) -> RendezvousInfo:
        """Raises a UserError where the ranks have found a user's mistake: no restart of the job could work."""
        if self._store.check([REFUSED]):
            raise UserError(self._store.get(REFUSED).decode())
        return super().next_rendezvous()


class PlaceHandler(RendezvousHandler):
    """In the place of a rendezvous, at a host that takes over ranks of a job that runs: the others do not stop."""

    use_agent_store = True

    def __init__(self, place: Place, parameters: RendezvousParameters) -> None:
        self.place, self._run_id = place, parameters.run_id
        self._address, self._store = parameters.config["address"], parameters.config["store"]
        self._backend, self._looked = Backend(self._store, self._run_id), 0.0

    def next_rendezvous(self) -> RendezvousInfo:
        return RendezvousInfo(self._store, 0, 1, RendezvousStoreInfo(*self._address))

    def num_nodes_waiting(self) -> int:
        """Raises MeetAgainError where all hosts start the job anew: this one then takes part in it as any other."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:  # the agent asks ten times a second
            self._looked = time.monotonic()
            if hosts_meet(self._backend):
                raise MeetAgainError
        return 0

    def get_backend(self) -> str:
        return BACKEND

    def get_run_id(self) -> str:
        return self._run_id

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None: ...

    def shutdown(self) -> bool:
        return True


def _create_handler(parameters: RendezvousParameters) -> RendezvousHandler:
    """The handler for torchrun's registry, over the store in `parameters.config`."""
    store = parameters.config["store"]
    if parameters.config["place"]:
        return PlaceHandler(parameters.config["place"], parameters)
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
    handler.goes_on = parameters.config["goes_on"]
    return handler
