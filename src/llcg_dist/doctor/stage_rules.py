"""Checks whether the stages of a job fit into the free memory and onto the disk, and names the setting that helps."""

from llcg_dist.config.partition import FeaturesDtype, PartitionMethod
from llcg_dist.config.schema import Config
from llcg_dist.doctor.findings import OK, WARN, Finding, format_bytes
from llcg_dist.doctor.forecast import Forecast
from llcg_dist.doctor.stages import CUT, INGEST, PARTS, StageCost
from llcg_dist.doctor.training_stages import EVALUATE, MACHINE, PREDICT, SERVER, TRAIN

_PARTS_OF_TRAINING = (SERVER, MACHINE, EVALUATE)
_GROUP = "stages"


_USUAL_READ_AHEAD = 128 << 10
"""Linux's own. A row that is not in memory is read with so much around it."""


def check_stages(
    config: Config, forecast: Forecast, free_memory: int, free_disk: int, read_ahead: int = _USUAL_READ_AHEAD
) -> list[Finding]:
    """A warning for each stage whose predicted memory or disk is more than what is free. `read_ahead`: bytes that the
    kernel reads at a time where a mapped file is not in memory."""
    findings = []
    whole = {name: cost for name, cost in forecast.stages.items() if name not in _PARTS_OF_TRAINING}
    for name, cost in whole.items():
        if cost.anonymous > free_memory:
            needs = f"{name}: needs about {format_bytes(cost.anonymous)} of memory"
            advice = _memory_advice(name, config, forecast)
            findings.append(Finding(WARN, _GROUP, f"{needs}, {format_bytes(free_memory)} are free", advice))
        elif cost.memory > free_memory:
            what = f"{name}: {format_bytes(cost.anonymous)} and {format_bytes(cost.mapped)} of mapped files"
            slow = f"{format_bytes(free_memory)} are free, so files will be read from disk again and again"
            findings.append(Finding(WARN, _GROUP, f"{what}; {slow}", _smaller_files(config, read_ahead)))
    name, most = max(whole.items(), key=lambda item: item[1].disk, default=("", StageCost(0, 0, 0)))
    if most.disk > free_disk:
        needs = f"{name}: needs about {format_bytes(most.disk)} of disk, {format_bytes(free_disk)} are free"
        findings.append(Finding(WARN, _GROUP, needs, _disk_advice(name, config)))
    if findings:
        return findings
    largest = max(whole.values(), key=lambda cost: cost.anonymous).anonymous
    what = f"the largest stage needs about {format_bytes(largest)} of memory, {format_bytes(free_memory)} are free"
    return [Finding(OK, _GROUP, what)]


def _memory_advice(name: str, config: Config, forecast: Forecast) -> str:
    if name == INGEST:
        return "set dataset.memory to fewer GB: more is then sorted on disk"
    if name == CUT:
        streams = forecast.method == PartitionMethod.stream
        return "cut it on a host with more memory" if streams else "use partition=stream: it holds a few numbers a node"
    if name == PARTS:
        return "use more machines (cluster.num_machines): a part is put together in memory"
    if name in (TRAIN, PREDICT):
        evaluation = forecast.stages[EVALUATE].anonymous
        if evaluation > forecast.stages[TRAIN].anonymous / 4 and not config.evaluate.scratch:
            return (
                "keep hidden states on disk with evaluate.scratch=FOLDER, or halve them with evaluate.states=bfloat16"
            )
        return "spread the ranks over several hosts (llcg help hosts), or lower batch sizes and sampling.server_fanout"
    return "end what else runs here"


def _smaller_files(config: Config, read_ahead: int) -> str:
    if read_ahead > _USUAL_READ_AHEAD:
        return (
            f"the kernel reads {format_bytes(read_ahead)} of this disk for every row that is missing; "
            "as root: echo 128 > /sys/class/bdi/*/read_ahead_kb (of this disk)"
        )
    if config.partition.features_dtype == FeaturesDtype.float16:
        return "end what else runs here, or spread the ranks over several hosts (llcg help hosts)"
    return "partition.features_dtype=float16 halves the features"


def _disk_advice(name: str, config: Config) -> str:
    if name in (TRAIN, PREDICT):
        return "name another evaluate.scratch"
    halves = config.partition.features_dtype != FeaturesDtype.float16
    return "set partition.root to a folder on a larger disk" + (", or partition.features_dtype=float16" * halves)
