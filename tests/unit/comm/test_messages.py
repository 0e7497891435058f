"""What crosses beside a model: the stats of a machine's round."""

import torch

from llcg_dist.comm.messages import TrainStats


def test_stats_survive_their_packing() -> None:
    stats = TrainStats(train_loss=0.1, seconds_local=12.5, steps=2**40, peak_rss_mb=386.25)
    packed = stats.pack()
    assert packed.dtype == torch.float64
    assert len(packed) == TrainStats.size()
    assert TrainStats.unpack(packed) == stats
    assert isinstance(TrainStats.unpack(packed).steps, int)
