"""Both ends of a sealed link, without a network between them."""

from torch import Tensor

from llcg_dist.comm.frame import SEAL_BYTES, Label
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.session import Scope, Session, new_salt

KEY = bytes(range(32))
SCOPE = Scope("llcg/start", KEY, "AES-256-GCM")
MODEL = Label(Kind.PARAMETERS, round=3)


def two_ends(
    machine: int = 1, incarnation: int = 0, scope: Scope = SCOPE, machines_scope: Scope | None = None
) -> tuple[Session, Session]:
    """The server's end and the machine's."""
    salts = new_salt(), new_salt()
    server = Session(scope, (0, machine), salts, incarnation)
    return server, Session(machines_scope or scope, (machine, 0), salts[::-1], incarnation)


def sealed(session: Session, content: bytes, label: Label = MODEL) -> bytearray:
    """The frame around the content."""
    frame = bytearray(SEAL_BYTES + len(content))
    assert session.seal(label, memoryview(content), memoryview(frame)) == len(frame)
    return frame


def received(frame: bytes | bytearray, buffer: Tensor) -> memoryview:
    """The memory of a receiver after the frame has arrived, as Gloo leaves what lies behind a short message."""
    buffer[:64].zero_()
    memory = buffer.numpy().data
    memory[: len(frame)] = frame
    return memory
