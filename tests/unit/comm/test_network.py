"""Which interface a rank talks through, and where it listens."""

import os

import pytest

from llcg_dist.comm.network import choose_interface, interfaces, listen_on, route_to, use_interface
from llcg_dist.errors import UserError

HERE = {"lo": ["127.0.0.1", "::1"], "eth0": ["10.0.0.5"], "ib0": ["192.168.7.5", "10.0.9.5"], "wlan0": []}


@pytest.mark.parametrize(
    ("requested", "own_address", "chosen"),
    [
        (None, "127.0.0.1", "lo"),
        (None, "10.0.0.5", "eth0"),
        (None, "10.0.9.5", "ib0"),
        ("ib0", "10.0.0.5", "ib0"),
        ("eth0", None, "eth0"),
    ],
)
def test_the_interface(requested: str | None, own_address: str | None, chosen: str) -> None:
    assert choose_interface(requested, own_address, HERE) == chosen


@pytest.mark.parametrize(
    ("requested", "own_address", "told"),
    [
        ("eth7", "10.0.0.5", r"cluster\.interface=eth7: is no interface of this host"),
        ("wlan0", "10.0.0.5", r"cluster\.interface=wlan0: has no address"),
        (None, "172.16.0.1", r"cluster\.interface: none leads to the job's head"),
        (None, None, r"cluster\.interface: none leads"),
    ],
)
def test_an_interface_that_cannot_work_names_those_that_can(
    requested: str | None, own_address: str | None, told: str
) -> None:
    with pytest.raises(UserError, match=told) as refused:
        choose_interface(requested, own_address, HERE)
    assert "eth0 (10.0.0.5), ib0 (192.168.7.5), lo (127.0.0.1)" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_this_host() -> None:
    assert "127.0.0.1" in interfaces()["lo"]
    assert route_to("127.0.0.1") == "127.0.0.1"
    assert route_to("no-such-host.invalid") is None


def test_a_job_on_one_host_talks_through_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.setenv(variable, "")
    use_interface(None, "127.0.0.1")
    assert (os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"]) == ("lo", "lo")


def test_what_the_user_set_in_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "mine")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "")
    use_interface(None, "127.0.0.1")
    assert (os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"]) == ("mine", "lo")
    use_interface("lo", "127.0.0.1")
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


def test_a_listener_has_one_address_and_its_port_to_itself() -> None:
    with listen_on("127.0.0.1", 0) as listener:
        address, port = listener.getsockname()
        assert (address, port != 0) == ("127.0.0.1", True)
        with pytest.raises(OSError, match="in use"):
            listen_on("127.0.0.1", port)
    listen_on("127.0.0.1", port).close()
    with pytest.raises(OSError, match="[Aa]ssign"):
        listen_on("192.0.2.1", 0)  # reserved for documentation: nobody's
