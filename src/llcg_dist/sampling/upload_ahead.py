"""A round's mini-batches on the device of a trainer: on a GPU the next one is uploaded while one is used."""

import torch

from llcg_dist.sampling.minibatch import Batch, BatchStream


class DeviceBatches:
    """What a BatchStream draws, in its order, on a device.

    A GPU works off what it is given on its own. So after the host has queued a step it may draw the next batch, and
    have it copied by a second stream beside that step: two batches are on the device at a time. On a CPU nothing is
    drawn before it is needed, unless in a thread of its own (BatchStream.draw_ahead).
    """

    def __init__(self, batches: BatchStream, device: str) -> None:
        self._batches, self._device = batches, device
        kind = torch.device(device).type
        self._stream = torch.cuda.Stream(device) if kind == "cuda" else None
        self._is_remote = kind != "cpu"
        self._coming: Batch | None = None

    def next(self) -> Batch:
        """The next batch; what is queued from here on finds all of it."""
        batch, self._coming = self._coming or self._upload(), None
        if self._stream is not None:
            here = torch.cuda.current_stream(self._device)
            here.wait_stream(self._stream)
            for tensor in batch.tensors():
                tensor.record_stream(here)  # its memory belongs to the other stream, which would use it again too early
        return batch

    def begin_next(self) -> None:
        """Another batch will be needed: where the host has nothing else to do, it is drawn and sent off now."""
        if self._is_remote and self._coming is None:
            self._coming = self._upload()

    def _upload(self) -> Batch:
        batch = self._batches.next()
        if self._stream is None:
            return batch.to(self._device)
        with torch.cuda.stream(self._stream):
            return batch.to(self._device)
