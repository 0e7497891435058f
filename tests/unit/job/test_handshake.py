"""The start of a job, both ends, without processes: what is asked and answered, and how a mistake reaches all."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.partition import ensure_store
from llcg_dist.errors import ProtocolError, UserError
from llcg_dist.job.agreement import Identity, Offered, PartReport, described_shards, require_parts
from llcg_dist.job.handshake import (
    Begin,
    Failed,
    Identify,
    Leave,
    Offer,
    Ready,
    Refuse,
    TakePart,
    ask,
    ask_all,
    from_json,
    refusing_mistakes,
    to_json,
)
from llcg_dist.job.loopback import LoopbackHub
from llcg_dist.job.start import Start


@pytest.fixture
def config(tmp_path: Path) -> Config:
    settings = ["experiment=tiny", "cluster.num_machines=2", "cluster.backend=loopback", f"run_dir={tmp_path}/run"]
    return load_config([*settings, f"partition.root={tmp_path}/parts"])


@pytest.mark.parametrize(
    "message",
    [
        Identify(),
        Identity({"torch": "2"}, {"seed": 0}),
        Offer("runs/a"),
        Offered([0, 2], [2]),
        TakePart(1, [2, 1]),
        PartReport("abc", [3, 4]),
        Begin({"round": 3, "planned_rounds": 8}),
        Ready(),
        Refuse("no"),
        Leave(),
        Failed("broken"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_survive_json(message: Any) -> None:
    assert from_json(to_json(message)) == message


@pytest.mark.parametrize("content", [{}, {"message": "Launch"}, {"message": "Offer"}, {"message": "Ready", "part": 1}])
def test_what_is_no_message_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="not a message of the handshake"):
        from_json(content)


def test_a_whole_start(config: Config) -> None:
    _, manifest = ensure_store(config)
    hub = LoopbackHub(config, build_algorithm(config))
    assert ask_all(hub, Identify(), Identity) == [Identity.of(config)] * 2
    assert ask_all(hub, Offer("elsewhere"), Offered) == [Offered([0, 1], [])] * 2
    reports = ask(hub, [TakePart(1, [2, 1]), TakePart(0, [2, 1])], PartReport)
    shards = described_shards(manifest, ["part0", "part1"])
    require_parts([reports[1], reports[0]], [2, 1], shards)
    with pytest.raises(UserError, match=r"rank 2: its part 0 has checksum .*copy the part"):
        require_parts(reports, [2, 1], shards)
    start = Start(round=0, planned_rounds=config.num_rounds)
    assert ask_all(hub, Begin(asdict(start)), Ready) == [Ready()] * 2
    assert hub.transport([2, 1], None).num_machines == 2  # type: ignore[arg-type]


def test_a_mistake_at_one_machine_names_its_rank(config: Config) -> None:
    store, _ = ensure_store(config)
    (store / "part1" / "labels.npy").write_bytes(b"")
    hub = LoopbackHub(config, build_algorithm(config))
    ask_all(hub, Offer("run"), Offered)
    with pytest.raises(UserError, match=r"rank 2: .*labels.npy"):
        ask(hub, [TakePart(0, [1, 2]), TakePart(1, [1, 2])], PartReport)


class Recording:
    """A hub that writes down what is sent, and gives the replies it was given."""

    def __init__(self, *replies: Any) -> None:
        self.num_machines, self.sent = len(replies), list[tuple[int, Any]]()
        self._replies = replies

    def send(self, content: dict[str, Any], rank: int) -> None:
        self.sent.append((rank, from_json(content)))

    def receive(self, rank: int) -> dict[str, Any]:
        return to_json(self._replies[rank - 1])


def test_a_mistake_at_the_server_is_told_to_launchers_and_machines() -> None:
    hub, told = Recording(Ready(), Ready()), list[str]()
    with pytest.raises(UserError, match="no such folder"), refusing_mistakes(hub, told.append):
        raise UserError("no such folder")
    assert told == ["no such folder"]
    assert hub.sent == [(1, Refuse("no such folder")), (2, Refuse("no such folder"))]


def test_all_machines_are_asked_before_any_is_waited_for() -> None:
    hub = Recording(Ready(), Ready(), Ready())
    ask_all(hub, Identify(), Ready)
    assert [rank for rank, _ in hub.sent] == [1, 2, 3]


def test_an_answer_to_another_question_is_noticed() -> None:
    with pytest.raises(ProtocolError, match="rank 2 answered Offered, not Ready"):
        ask_all(Recording(Ready(), Offered([], [])), Identify(), Ready)


def test_a_machine_that_is_refused_ends_with_the_servers_line(config: Config) -> None:
    hub = LoopbackHub(config, build_algorithm(config))
    with pytest.raises(UserError, match="start all ranks alike"):
        hub.send(to_json(Refuse("rank 1 has seed 3 (rank 0: 0): start all ranks alike")), 1)
    with pytest.raises(ProtocolError, match="does not answer Ready"):
        hub.send(to_json(Ready()), 1)
