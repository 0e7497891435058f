"""Where the hosts of a job meet."""

import pytest

from llcg_dist.cli.launch.hosts import Hosts, JobStore
from llcg_dist.comm.network import interfaces, listen_on
from llcg_dist.errors import UserError


def test_a_port_that_is_taken_on_the_head() -> None:
    own = [address for name, found in interfaces().items() if name != "lo" for address in found if "." in address]
    if not own:
        pytest.skip("this machine has no address but loopback")
    with listen_on(own[0], 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} cannot be used .*in use.*; choose another"):
            JobStore(Hosts(2, own[0], port, "job", 1.0, 1), key=None)
