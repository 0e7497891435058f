"""The start of a job: the server asks, every machine answers; both ends are here.

    Identify              -> Identity      versions and settings, which must be the same at every rank
    Offer(run_dir)        -> Offered       parts on the rank's disk, and of which it has checkpoints
    TakePart(part, …)     -> PartReport    the part was read: its checksum, and the rounds it can resume from
    TrySteps(start)       -> StepSeconds   what a local step takes, where the plan of the run follows from it
    Begin(start)          -> Ready         the machine is built, and waits for its first round
    Refuse(reason)                         a user's mistake, wherever it was found: all ranks end with the same line
    Leave                                  the run is finished already

A machine that finds a mistake answers Failed(reason).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.machine_channel import MachineChannel
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.config.schema import Config
from llcg_dist.data import progress
from llcg_dist.data.derived import read_derived, shard_name
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import store_path
from llcg_dist.data.store import parts_on_disk, read_shard
from llcg_dist.data.views import RowSource
from llcg_dist.errors import ProtocolError, UserError
from llcg_dist.job.agreement import Identity, Offered, PartReport, checksum
from llcg_dist.job.checkpoint import part_owner, parts_with_checkpoints
from llcg_dist.job.devices import place_features
from llcg_dist.job.machine_factory import OpenPart, build_machine, seconds_of_local_step
from llcg_dist.job.mirrored_files import open_files
from llcg_dist.job.start import Start, checkpoint_folder


@dataclass(frozen=True)
class Identify: ...


@dataclass(frozen=True)
class Offer:
    run_dir: str


@dataclass(frozen=True)
class TakePart:
    part: int
    rank_of_part: list[int]


@dataclass(frozen=True)
class Begin:
    start: dict[str, Any]
    """A Start, as JSON has it."""


@dataclass(frozen=True)
class Ready: ...


@dataclass(frozen=True)
class TrySteps:
    start: dict[str, Any]
    """A Start that lacks what is measured (Start.measures_steps), as JSON has it."""


@dataclass(frozen=True)
class StepSeconds:
    seconds: float
    """CPU seconds of a local step."""


@dataclass(frozen=True)
class Refuse:
    reason: str


@dataclass(frozen=True)
class Leave: ...


@dataclass(frozen=True)
class Failed:
    reason: str


_MESSAGES = (
    *(Identify, Identity, Offer, Offered, TakePart, PartReport, TrySteps, StepSeconds, Begin, Ready),
    *(Refuse, Leave, Failed),
)
_BY_NAME: dict[str, Any] = {kind.__name__: kind for kind in _MESSAGES}
Reply = TypeVar("Reply")


def to_json(message: Any) -> dict[str, Any]:
    return {"message": type(message).__name__, **asdict(message)}


def from_json(content: Mapping[str, Any]) -> Any:
    """The message that `to_json` wrote; ProtocolError for anything else."""
    fields = dict(content)
    try:
        return _BY_NAME[fields.pop("message")](**fields)
    except (KeyError, TypeError) as error:
        raise ProtocolError(f"not a message of the handshake ({error})") from None


class Hub(Protocol):
    """The server's links to all machines while they start; machines have the ranks 1..num_machines."""

    @property
    def num_machines(self) -> int: ...

    def send(self, content: dict[str, Any], rank: int) -> None: ...

    def receive(self, rank: int) -> dict[str, Any]: ...


def ask(hub: Hub, requests: Sequence[Any], expected: type[Reply]) -> list[Reply]:
    """One request to every machine, by rank, and their replies. A machine's mistake is a UserError here."""
    progress.begin(f"the handshake ({expected.__name__})")
    for rank, request in enumerate(requests, start=1):
        hub.send(to_json(request), rank)
    replies = [from_json(hub.receive(rank)) for rank in range(1, 1 + len(requests))]
    for rank, reply in enumerate(replies, start=1):
        if isinstance(reply, Failed):
            raise UserError(f"rank {rank}: {reply.reason}")
        if not isinstance(reply, expected):
            raise ProtocolError(f"rank {rank} answered {type(reply).__name__}, not {expected.__name__}")
    return replies


def ask_all(hub: Hub, request: Any, expected: type[Reply]) -> list[Reply]:
    return ask(hub, [request] * hub.num_machines, expected)


def tell_all(hub: Hub, message: Any) -> None:
    """A message that has no reply."""
    for rank in range(1, 1 + hub.num_machines):
        hub.send(to_json(message), rank)


@contextmanager
def refusing_mistakes(hub: Hub, refuse: Callable[[str], None]) -> Iterator[None]:
    """The server's: the machines wait for its next message, and a user's mistake is one for them too. `refuse` tells
    the launchers."""
    try:
        yield
    except UserError as error:
        refuse(str(error))
        tell_all(hub, Refuse(str(error)))
        raise


class MachineEnvironment(Protocol):
    """What differs between a machine in a process of its own and one on loopback."""

    device: str
    ledger: Ledger

    def took_part(self, part: int, run_dir: Path) -> None:
        """The machine knows its part."""

    def remote_rows(self, part: int, rank_of_part: list[int], own: Tensor, fetched: FeatureTraffic) -> RowSource:
        """Access to the features of the other machines, where the method may ask for them."""


class MachineStart:
    """A machine's end: answers the server's questions until the machine is built."""

    channel: MachineChannel | None = None
    """Of the machine, once it is built."""
    codec: Codec

    def __init__(self, config: Config, algorithm: Algorithm, environment: MachineEnvironment) -> None:
        self._config, self._algorithm, self._environment = config, algorithm, environment
        self._store = store_path(config)
        self._fetched = FeatureTraffic()
        self._answers: dict[type[Any], Callable[[Any], Any]] = {
            Identify: self._identify,
            Offer: self._offer,
            TakePart: self._take_part,
            TrySteps: self._try_steps,
            Begin: self._begin,
        }

    def answer(self, content: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply to a message; None to Leave. Refuse raises the UserError that it brings."""
        message = from_json(content)
        if isinstance(message, Leave):
            return None
        if isinstance(message, Refuse):
            raise UserError(message.reason)
        if type(message) not in self._answers:
            raise ProtocolError(f"a machine does not answer {type(message).__name__}")
        progress.begin(type(message).__name__)
        try:
            return to_json(self._answers[type(message)](message))
        except UserError as error:
            return to_json(Failed(str(error)))

    def _identify(self, message: Identify) -> Identity:
        return Identity.of(self._config)

    def _offer(self, message: Offer) -> Offered:
        self._run_dir = Path(self._config.run_dir or message.run_dir)
        self._checkpoints = checkpoint_folder(self._config, self._run_dir)
        mirror = self._config.checkpoint.mirror
        folders = [self._checkpoints, *([Path(mirror)] if mirror else [])]
        started = {part for folder in folders for part in parts_with_checkpoints(folder)}
        return Offered(parts_on_disk(self._store), sorted(started))

    def _take_part(self, message: TakePart) -> PartReport:
        self._part, self._rank_of_part = message.part, message.rank_of_part
        self._environment.took_part(message.part, self._run_dir)
        access = self._algorithm.data_access
        self._shard = read_shard(self._store / shard_name(access, message.part), self._config.verify)
        self._derived = read_derived(self._config, access, self._store, message.part, self._shard.store_id)
        files = open_files(self._checkpoints, self._config.checkpoint.mirror, part_owner(message.part))
        return PartReport(checksum(self._shard.meta), files.rounds())

    def _try_steps(self, message: TrySteps) -> StepSeconds:
        return StepSeconds(seconds_of_local_step(self._open_part, Start(**message.start)))

    @cached_property
    def _open_part(self) -> OpenPart:
        part, environment = self._part, self._environment

        def remote(own: Tensor) -> RowSource:
            return environment.remote_rows(part, self._rank_of_part, own, self._fetched)

        view = part_view(self._config, part, self._shard, self._derived, remote)
        place_features(view, self._config.sampling.features_on, environment.device)
        return OpenPart(self._config, self._algorithm, part, view, self._checkpoints, environment.device, self._fetched)

    def _begin(self, message: Begin) -> Ready:
        machine, compressor = build_machine(self._open_part, Start(**message.start))
        self.codec = compressor.codec
        self.channel = MachineChannel(machine, compressor, self._environment.ledger, self._algorithm.messages)
        return Ready()
