"""Checks whether a host can run its ranks of a job: network, devices, cores, package versions."""

from llcg_dist.config.cluster import Backend, ClusterConfig, Device
from llcg_dist.config.schema import Config
from llcg_dist.config.train import Precision
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding
from llcg_dist.doctor.host import TESTED_VERSIONS, Host
from llcg_dist.job.devices import threads_per_rank


def check_host(host: Host, cluster: ClusterConfig, ranks: int) -> list[Finding]:
    """All checks of a host that runs `ranks` ranks of the job."""
    return [
        *check_network(host, ranks),
        *check_devices(host.gpus, cluster, ranks),
        *check_cores(host.cores, threads_per_rank(cluster.threads, ranks), ranks),
        *check_server_threads(host.cores, cluster, ranks),
        *check_versions(host.versions),
    ]


def check_processes(started: str | None, wanted: int) -> list[Finding]:
    """Compares WORLD_SIZE (`started`; None if no launcher has set it) with the number of processes of the job."""
    if started is not None and started != str(wanted):
        advice = f"start {wanted} in all (torchrun --nproc-per-node on one host), or set cluster.num_machines"
        return [Finding(ERROR, "host", f"the job is {wanted} process(es), but WORLD_SIZE={started}", advice)]
    return [Finding(OK, "host", f"the job is {wanted} process(es)")]


def check_versions(versions: dict[str, str | None]) -> list[Finding]:
    findings = []
    for name, tested in TESTED_VERSIONS.items():
        installed = versions.get(name)
        if installed is None:
            advice = f"install it: pip install -c constraints.txt {name}"
            findings.append(Finding(ERROR, "versions", f"{name} is not installed", advice))
        elif not _matches(installed, tested):
            advice = "install with -c constraints.txt if anything odd happens"
            findings.append(
                Finding(WARN, "versions", f"{name} {installed} is not the tested {tested.replace('|', ', ')}", advice)
            )
    good = [
        f"{name} {versions[name]}"
        for name, tested in TESTED_VERSIONS.items()
        if _matches(versions.get(name) or "", tested)
    ]
    return [*findings, Finding(OK, "versions", f"tested: {', '.join(good)}")] if good else findings


def _matches(installed: str, tested: str) -> bool:
    """Whether `installed` is one of the tested versions: 2.13.0+cpu counts as 2.13.0, and 3.11.9 as 3.11."""
    plain = installed.split("+")[0]
    return any(plain == one or plain.startswith(f"{one}.") for one in tested.split("|"))


def check_network(host: Host, ranks: int) -> list[Finding]:
    if ranks == 1:
        return [Finding(OK, "host", "one process: no network needed")]
    known = ", ".join(f"{name} {address}" for name, address in host.interfaces.items()) or "none"
    if host.wanted_interface and host.wanted_interface not in host.interfaces:
        what = f"cluster.interface={host.wanted_interface}: no such interface with an address"
        return [Finding(ERROR, "host", what, f"name one of: {known}")]
    if host.listen_failure:
        what = f"no port can be opened on {host.address} ({host.listen_failure})"
        advice = f"bring the interface up (ip link set lo up), or name another (here: {known})"
        return [Finding(ERROR, "host", what, advice)]
    return [Finding(OK, "host", f"ports open on {host.address}; interfaces: {known}")]


def check_devices(gpus: int, cluster: ClusterConfig, ranks: int) -> list[Finding]:
    """Checks the GPUs: NCCL needs one for every rank; Gloo works with any number, and with none."""
    if cluster.device == Device.cuda and gpus == 0:
        return [Finding(ERROR, "host", "cluster.device=cuda: torch sees no GPU here", "use cluster.device=cpu")]
    if cluster.backend == Backend.nccl and ranks > 1 and gpus < ranks:
        what = f"cluster.backend=nccl: {ranks} ranks but {gpus} GPU(s) here, and NCCL needs one for each"
        return [Finding(ERROR, "host", what, "use cluster.backend=auto, or fewer ranks on this host")]
    if cluster.backend == Backend.nccl and cluster.device == Device.cpu and ranks > 1:
        what = "cluster.backend=nccl with cluster.device=cpu: NCCL moves GPU memory only"
        return [Finding(ERROR, "host", what, "use cluster.backend=gloo or cluster.device=cuda")]
    if gpus == 0 or cluster.device == Device.cpu:
        unused = f" ({gpus} GPU(s) unused: cluster.device=cuda)" if gpus else ""
        return [Finding(OK, "host", f"models on the CPU, messages through gloo{unused}")]
    if gpus < ranks:
        return [Finding(OK, "host", f"{ranks} ranks share {gpus} GPU(s), messages through gloo")]
    return [Finding(OK, "host", f"{gpus} GPU(s) for {ranks} ranks: a GPU each")]


def check_precision(host: Host, config: Config) -> list[Finding]:
    """Compares train.precision with what this host's CPU, or the GPU that its ranks use, is made for."""
    on_gpu = host.gpus > 0 and config.cluster.device != Device.cpu
    device, unit = ("GPU", host.gpu_bfloat16) if on_gpu else ("CPU", host.cpu_bfloat16)
    what, asked = f"train.precision={config.train.precision}", config.train.precision == Precision.bfloat16
    if asked and not unit:
        advice = "set train.precision=float32: bfloat16 works here, but is slower"
        return [Finding(WARN, "host", f"{what}: the {device} has no instructions for bfloat16 products", advice)]
    faster = f"{unit}: train.precision=bfloat16 makes the steps of wide models faster; the bits are others"
    return [Finding(OK, "host", what, f"the {device} has {faster}" if unit and not asked else "")]


def check_cores(cores: int, threads: int, ranks: int) -> list[Finding]:
    what = f"{ranks} rank(s) with {threads} thread(s) each on {cores} core(s)"
    if threads > 1 and ranks * threads > cores:
        advice = "set cluster.threads=1: threads that wait for each other make a run many times slower"
        return [Finding(WARN, "host", what, advice)]
    slow = "they take turns: a round takes longer, the result is the same" if ranks > cores else ""
    return [Finding(OK, "host", what, slow)]


def check_server_threads(cores: int, cluster: ClusterConfig, ranks: int) -> list[Finding]:
    """Counts an explicit cluster.server_threads: evaluation runs while the machines of its host train."""
    asked, threads = cluster.server_threads, threads_per_rank(cluster.threads, ranks)
    if not isinstance(asked, int) or asked <= threads or asked + (ranks - 1) * threads <= cores:
        return []
    machines = f"beside {ranks - 1} machine(s) with {threads} thread(s) each on {cores} core(s)"
    advice = "set cluster.server_threads=auto: it takes the cores that the machines leave free"
    return [Finding(WARN, "host", f"cluster.server_threads={asked} {machines}", advice)]
