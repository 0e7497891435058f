"""Links over real Gloo connections within this process: sealed ones prove the key, and a stranger is turned away."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from llcg_dist.comm.envelope import Envelope, Packet
from llcg_dist.comm.frame import HEADER_BYTES, FrameBuffer, Label, SealError
from llcg_dist.comm.gpu_path import GpuPath
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.links import PlainLink, SealedLink
from llcg_dist.comm.session import Scope, Session, new_salt
from llcg_dist.errors import ProtocolError
from tests.helpers.gloo_threads import LIMIT, at_once, gloo_members
from tests.helpers.sessions import KEY, MODEL, SCOPE

MODELS = torch.arange(1000, dtype=torch.float32)


def at_both_ends(server: Callable[[], Any], machine: Callable[[], Any]) -> list[Any]:
    """What both return or raise; they run at the same time."""
    return at_once([server, machine])


@pytest.fixture(scope="module")
def pair() -> list[PlainLink]:
    """Two ends of one connection."""
    return [PlainLink(1 - rank, group) for rank, group in enumerate(gloo_members(2))]


def sealed_ends(pair: list[PlainLink], machines_key: bytes = KEY, incarnation: int = 0) -> list[SealedLink]:
    salts = new_salt(), new_salt()
    server = Session(SCOPE, (0, 1), salts, incarnation)
    machine = Session(Scope(SCOPE.job, machines_key, SCOPE.cipher), (1, 0), salts[::-1], incarnation)
    return [SealedLink(pair[0], server), SealedLink(pair[1], machine)]


def exchange(sender: Any, receiver: Any, message: torch.Tensor, capacity: int, label: Label = MODEL) -> FrameBuffer:
    frame = FrameBuffer(capacity)
    for work in (sender.send(message, label), receiver.receive(frame)):
        work.wait(LIMIT)
    return frame


@pytest.mark.parametrize("make", [lambda pair: pair, sealed_ends], ids=["plain", "sealed"])
def test_messages_of_any_size_cross_both_ways(pair: list[PlainLink], make: Callable[[Any], Any]) -> None:
    server, machine = make(pair)
    for sender, receiver in ((server, machine), (machine, server), (server, machine)):
        for size in (1000, 3, 500):
            frame = exchange(sender, receiver, MODELS[:size], MODELS.nbytes)
            assert torch.equal(frame.body.view(torch.float32)[:size], MODELS[:size])
            assert (frame.header is None) == (sender is pair[0] or sender is pair[1])


def test_two_messages_may_be_on_their_way(pair: list[PlainLink]) -> None:
    """Their frames lie in memory of their own, which is used again when they have left."""
    server, machine = sealed_ends(pair)
    for _ in range(3):
        sent = [server.send(MODELS[:size], MODEL) for size in (10, 700)]
        frames = [FrameBuffer(MODELS.nbytes) for _ in sent]
        for work in (*(machine.receive(frame) for frame in frames), *sent):
            work.wait(LIMIT)
        for frame, size in zip(frames, (10, 700), strict=True):
            assert torch.equal(frame.body.view(torch.float32)[:size], MODELS[:size])
    assert len(server._free) == 2


def test_both_ends_prove_the_key_and_a_link_is_made_anew(pair: list[PlainLink]) -> None:
    """As for a machine that is replaced: the next incarnation has nothing of the one before."""
    for incarnation in (0, 1, 2):
        server, machine = sealed_ends(pair, incarnation=incarnation)
        assert at_both_ends(partial(server.prove, LIMIT), partial(machine.prove, LIMIT)) == [None, None]
        exchange(server, machine, MODELS, MODELS.nbytes)


def test_a_stranger_with_another_key_is_turned_away_before_anything_is_read(pair: list[PlainLink]) -> None:
    server, stranger = sealed_ends(pair, machines_key=bytes(32))
    errors = at_both_ends(lambda: server.prove(LIMIT), lambda: stranger.prove(LIMIT))
    assert all(isinstance(error, SealError) for error in errors)
    assert str(errors[0]) == (
        "rank 1 has not proved that it has this job's key: a message from rank 1 is refused: "
        "it was not sealed with this job's key, or was changed or cut short"
    )


def test_a_stranger_who_has_no_key_at_all_is_turned_away(pair: list[PlainLink]) -> None:
    """It sends what a rank without sealing would, or what it has heard before."""
    recorded = FrameBuffer(0)
    server, machine = sealed_ends(pair)
    sent = machine.send(torch.empty(0, dtype=torch.uint8), Label(Kind.SEALING))
    for work in (sent, pair[0].receive_bytes(recorded.whole)):
        work.wait(LIMIT)
    for message in (torch.zeros(1, dtype=torch.int64), recorded.whole):
        server, _ = sealed_ends(pair)
        errors = at_both_ends(partial(server.prove, LIMIT), partial(_sent, pair[1], message))
        assert isinstance(errors[0], SealError)
        pair[1].receive_bytes(FrameBuffer(0).whole).wait(LIMIT)  # the server's own proof


def test_a_short_message_is_not_completed_by_the_one_before(pair: list[PlainLink]) -> None:
    """A hundred bytes instead of an update, as the receiver's memory still holds the rest of the last one."""
    server, machine = sealed_ends(pair)
    frame = FrameBuffer(MODELS.nbytes)
    for work in (machine.send(MODELS, MODEL), server.receive(frame)):
        work.wait(LIMIT)
    cut, whole = SealedLink(_Cut(pair[1]), machine._session), server.receive(frame)  # type: ignore[arg-type]
    cut.send(MODELS, MODEL).wait(LIMIT)
    with pytest.raises(SealError, match="changed or cut short"):
        whole.wait(LIMIT)


def _sent(link: PlainLink, message: torch.Tensor) -> None:
    link.send_bytes(message).wait(LIMIT)


class _Cut:
    """Lets the first hundred bytes of a message through."""

    def __init__(self, link: PlainLink) -> None:
        self._link = link

    def send_bytes(self, message: torch.Tensor) -> Any:
        return self._link.send_bytes(message[: HEADER_BYTES + 36])


@pytest.fixture(scope="module")
def with_gpus() -> list[PlainLink]:
    """Two ends whose second connection stands for NCCL's: Gloo's, over the CPU's memory."""
    ways = zip(gloo_members(2), gloo_members(2), strict=True)
    return [
        PlainLink(1 - rank, control, GpuPath(content, 1 - rank, "cpu")) for rank, (control, content) in enumerate(ways)
    ]


def test_contents_take_the_way_between_gpus_and_control_does_not(
    with_gpus: list[PlainLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly the bytes that the head announces cross there; messages without a head or a content never do."""
    crossed = list[int]()
    server, machine = with_gpus
    for link in with_gpus:
        path = link._gpus
        assert path is not None
        monkeypatch.setattr(path, "send", noted(path.send, crossed))
    for size in (96, 40, 0, 96):
        for sender, receiver in ((server, machine), (machine, server)):
            outgoing, incoming = Envelope(2, 96), Envelope(2, 96)
            content = torch.arange(size // 4, dtype=torch.float32) if size else None
            packet = Packet(1, 7, 3, torch.tensor([0.5, 2.0], dtype=torch.float64), content)
            works = [sender.send(outgoing.write(packet), outgoing.label(packet)), receiver.receive(incoming.frame)]
            for work in reversed(works):  # Gloo's content leaves when its receiver asks for it
                work.wait(LIMIT)
            read = incoming.read()
            assert (read.code, read.round, read.durable_round) == (1, 7, 3)
            assert read.stats is not None
            assert read.stats.tolist() == [0.5, 2.0]
            assert incoming.received_bytes == 8 * 6 + size
            assert content is None or torch.equal(read.content.view(torch.float32), content)  # type: ignore[union-attr]
    assert crossed == [96, 96, 40, 40, 96, 96]
    exchange(server, machine, MODELS[:9], MODELS.nbytes, MODEL)
    assert len(crossed) == 6


def test_a_content_longer_than_its_place_is_refused(with_gpus: list[PlainLink]) -> None:
    server, machine = with_gpus
    outgoing, incoming = Envelope(0, 96), Envelope(0, 8)
    packet = Packet(1, 7, 3, None, torch.zeros(24))
    sent = server.send_bytes(outgoing.write(packet)[:32])
    with pytest.raises(ProtocolError, match="announced 96 bytes of content, of which 8 fit"):
        machine.receive(incoming.frame).wait(LIMIT)
    sent.wait(LIMIT)


def noted(send: Callable[[torch.Tensor], Any], sizes: list[int]) -> Callable[[torch.Tensor], Any]:
    def noting(content: torch.Tensor) -> Any:
        sizes.append(len(content))
        return send(content)

    return noting
