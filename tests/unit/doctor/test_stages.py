"""Stages of `llcg partition`, summed by hand; none of them gets cheaper where a graph gets larger."""

import math
from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.partition import NodeOrder, PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.data import external_csr, rows
from llcg_dist.data.datasets import edge_files
from llcg_dist.data.metis import Metis
from llcg_dist.doctor import stages
from llcg_dist.doctor.rates import Rates
from llcg_dist.doctor.stages import (
    LIBRARIES_MAPPED,
    StageCost,
    count_cut_edges,
    cut,
    entries_sorted_together,
    ingest,
    partition_stages,
    write_parts,
    write_whole,
)
from tests.helpers.stage_facts import EVERYTHING, PLENTY, TRAINING, rates, size

PROCESS = stages._PROCESS + stages._TABLES_IMPORTED
STREAM = PartitionConfig(PartitionMethod.stream)
TOPOLOGY = 4 * (1_000 + 1 + 20_000)
FEATURES = 4 * 1_000 * 10


def test_the_sizes_that_memory_follows_from_are_those_of_the_code() -> None:
    assert stages._BYTES_OF_EDGE == external_csr._BYTES_OF_EDGE
    assert stages._BYTES_OF_SORTED == external_csr._BYTES_OF_ENTRY
    assert stages._BYTES_OF_TEXT_EDGE == edge_files._BYTES_OF_EDGE
    assert stages._VALUES_PER_CHUNK == rows._VALUES_PER_CHUNK


def test_ingest_sorts_checks_and_hashes() -> None:
    given_files = size(file_bytes=200_000, edge_bytes=90_000)
    speed = rates(hash_byte=1e-6, add_edge=0.7e-5, find_edge=0.3e-5, sort_entry=1e-6, check_entry=2e-6, scan_value=1e-7)
    cost = ingest(given_files, speed)
    by_hand = 0.2 + 0.1 + 20_000 * (1e-6 * math.log2(20_002) + 2e-6) + 2 * 10_000 * 1e-7
    assert cost.cpu == pytest.approx(by_hand)
    assert cost.anonymous == PROCESS + 34 * 20_000 + 8 * 1_000  # the sort holds most, and the degrees
    assert cost.mapped == FEATURES + 90_000 + LIBRARIES_MAPPED
    assert cost.disk == 8 * 20_000  # the buckets


def test_files_that_memory_does_not_hold_are_read_from_disk_twice_and_buckets_once() -> None:
    given_files = size(file_bytes=200_000)
    held, read = (
        ingest(given_files, rates(read_byte=1e-6, read_wait=3e-6, free_memory=free)) for free in (1 << 40, 1 << 20)
    )
    assert held.seconds == 0
    assert read.cpu == pytest.approx((8 * 20_000 + 2 * 200_000) * 1e-6)
    assert read.waits == pytest.approx(3 * read.cpu)


def test_new_pages_are_found_for_buckets_and_topology() -> None:
    assert ingest(size(), rates(new_page=1e-6)).cpu == pytest.approx((8 * 20_000 + TOPOLOGY) * 1e-6)


def test_features_of_another_type_are_written_while_the_graph_is_loaded() -> None:
    speed = rates(write_byte=1e-6)
    converted = size(stored_bytes=2)
    assert ingest(size(), speed).cpu == 0
    assert ingest(converted, speed).cpu == pytest.approx(FEATURES / 2 * 1e-6)
    assert ingest(converted, speed).disk == 8 * 20_000 + FEATURES // 2
    assert write_whole(size(), speed.partition).cpu == pytest.approx((FEATURES + 9_000) * 1e-6)
    assert write_whole(converted, speed.partition).cpu == pytest.approx(9_000 * 1e-6)


def test_a_generated_graph_is_drawn_first() -> None:
    speed = rates(draw_number=1e-6)
    cost = ingest(size(is_written=True, is_drawn=True), speed)
    assert cost.cpu == pytest.approx(1e-6 * (12 * 10_000 + 10_000))
    assert cost.disk == (16 + 9) * 10_000
    assert ingest(size(), rates(find_edge=1e-6)).cpu == pytest.approx(0.01)
    assert ingest(size(is_drawn=True), rates(find_edge=1e-6, start=1.0)).cpu == 0  # no ids, no tables


@pytest.mark.parametrize(
    ("memory", "together"),
    [
        (PLENTY, 1_000_000),
        (80_000_000, 1_000_000 // 2),  # 2 M entries fit, and 2 · 1 M / 2 M + 1 buckets are made
        (4_000_000, 1_000_000 // 21),
    ],
)
def test_buckets_are_as_small_as_memory_asks(memory: int, together: int) -> None:
    assert entries_sorted_together(1_000_000, memory) == together
    large = size(nodes=10_000, edges=500_000)
    held = ingest(large, rates(memory)).anonymous - PROCESS
    assert held >= 34 * together
    assert held <= max(34 * together + 80_000, 16 * 500_000 + 34 * 500_000, 34 * 1_000_000)


def test_less_memory_for_loading_is_less_memory() -> None:
    large = size(nodes=1_000_000, edges=100_000_000)
    costs = [ingest(large, rates(memory)).anonymous for memory in (10_000_000_000, 1_000_000_000)]
    assert costs[1] < costs[0] < PROCESS + 10_000_000_000


def test_the_whole_graph_is_hashed() -> None:
    cost = write_whole(size(), rates(hash_byte=1e-6).partition)
    assert cost.cpu == pytest.approx((TOPOLOGY + FEATURES + 9 * 1_000) * 1e-6)
    assert cost.disk == TOPOLOGY + FEATURES + 9 * 1_000


def test_stream_takes_passes_over_all_entries_and_a_few_numbers_a_node() -> None:
    speed = rates(merge=1e-6).partition
    assert cut(size(), STREAM, speed).cpu == pytest.approx(20_000 * 4.9e-6)
    assert cut(size(edges=50_000_000), STREAM, speed).cpu == pytest.approx(100_000_000 * 9e-6)  # merged once more
    few, many, more = (cut(size(nodes=nodes), STREAM, speed).anonymous for nodes in (1_000, 10_000_000, 20_000_000))
    assert more - many == 10_000_000 * 7 * 4  # while clusters are merged; where these are few, METIS holds more
    assert few > PROCESS + 1_000 * 7 * 4
    assert cut(size(), STREAM, speed).mapped == TOPOLOGY + LIBRARIES_MAPPED


def test_metis_needs_what_partition_auto_reckons() -> None:
    speed = rates(metis_entry=1e-6).partition
    cost = cut(size(), PartitionConfig(PartitionMethod.metis, backend=PartitionBackend.pymetis), speed)
    assert cost.anonymous == PROCESS + Metis("pymetis").memory(20_000)
    assert cost.mapped == 8 * 21_000 + LIBRARIES_MAPPED
    assert cost.cpu == pytest.approx(0.02)
    assert cut(size(), PartitionConfig(PartitionMethod.random), speed).cpu == 0


def test_another_order_rewrites_the_whole_graph() -> None:
    speed = replace(EVERYTHING, start=0.0)
    plain, ordered = (cut(size(), replace(STREAM, order=order), speed) for order in NodeOrder)
    assert ordered.cpu - plain.cpu == pytest.approx(
        1e-6 * (20_000 * (1 + 21) + 2 * FEATURES + TOPOLOGY + FEATURES + 13_000)
    )
    assert ordered.disk > plain.disk


def test_cut_edges_are_counted_in_chunks() -> None:
    cost = count_cut_edges(size(), rates(count_entry=1e-6).partition)
    assert cost.cpu == pytest.approx(0.02)
    assert cost.anonymous == PROCESS + 12 * 1_000 + 44 * 20_000
    many = size(edges=1 << 30)
    assert count_cut_edges(many, rates().partition).anonymous == PROCESS + 12 * 1_000 + 44 * (1 << 21)


def test_parts_are_made_one_at_a_time_and_synced_together() -> None:
    speed = rates(write_byte=1e-6, disk_byte=1e-6).partition
    cost = write_parts(size(), 4, speed)
    part = (4 * (1_000 + 0.8 * 20_000) + FEATURES + 17 * 1_000) / 4
    whole = TOPOLOGY + FEATURES + 13 * 1_000
    assert cost.cpu == pytest.approx(4 * part * 1e-6)
    assert cost.disk == whole + 4 * part
    assert cost.waits == pytest.approx(cost.disk * 1e-6)
    assert cost.seconds == pytest.approx(cost.cpu + cost.waits)
    assert cost.anonymous == PROCESS + 20 * 1_000 + 44 * 5_000 + 2 * 4 * 5_000 + FEATURES // 4


def test_indices_have_eight_bytes_where_four_do_not_reach() -> None:
    assert size(nodes=10, edges=2**30).index_bytes == 8
    assert size(nodes=10, edges=2**30 - 1).index_bytes == 4


def numbers(cost: StageCost) -> tuple[float, ...]:
    return (*astuple(cost), cost.seconds, cost.memory)


@given(
    nodes=st.integers(1, 10**8),
    edges=st.integers(1, 10**10),
    features=st.integers(1, 2_000),
    more=st.tuples(*[st.integers(0, 10**6)] * 3),
    parts=st.integers(1, 64),
    method=st.sampled_from([PartitionMethod.stream, PartitionMethod.metis, PartitionMethod.random]),
)
def test_no_stage_gets_cheaper_with_more_nodes_edges_or_features(
    nodes: int, edges: int, features: int, more: tuple[int, int, int], parts: int, method: PartitionMethod
) -> None:
    everything = Rates(EVERYTHING, TRAINING, cores=2, memory_for_loading=PLENTY, free_memory=PLENTY)
    smaller = size(nodes=nodes, edges=edges, features=features)
    larger = size(nodes=nodes + more[0], edges=edges + more[1], features=features + more[2])
    config = PartitionConfig(method)
    pairs = zip(*(partition_stages(one, config, parts, everything).items() for one in (smaller, larger)), strict=True)
    for (name, less), (_, greater) in pairs:
        for before, after in zip(numbers(less), numbers(greater), strict=True):
            assert after >= before * (1 - 1e-9), name
