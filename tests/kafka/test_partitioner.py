"""Keys are dealt over partitions as Kafka's own client deals them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.app.services.java_server import jars
from streamgauge.streams.kafka.clients import Access
from streamgauge.streams.kafka.partitioner import murmur2, partitions_of

#: sends each line of the input as a key, and prints the partition in which the broker has it
JAVA = """
import java.io.*; import java.util.Properties;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;
public class Partitions {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        var lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8")).lines().toList();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String line : lines)
                System.out.println(producer.send(new ProducerRecord<>(given[1], line, "")).get().partition());
        }
    }
}
"""


def hash_of(key: bytes) -> int:
    """MurmurHash2 in plain Python, byte by byte, after Austin Appleby's description."""
    m, hashed = 0x5BD1E995, 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * m % 2**32
        word = (word ^ (word >> 24)) * m % 2**32
        hashed = (hashed * m % 2**32) ^ word
    if tail := key[whole:]:
        hashed = (hashed ^ int.from_bytes(tail, "little")) * m % 2**32
    hashed = (hashed ^ (hashed >> 13)) * m % 2**32
    return hashed ^ (hashed >> 15)


@given(st.lists(st.binary(max_size=23)), st.integers(0, 3))
def test_a_hash_is_murmur2(keys: list[bytes], skipped: int) -> None:
    array = pa.array(keys, pa.binary())[skipped:]
    assert murmur2(array).tolist() == [hash_of(key) for key in keys[skipped:]]


@given(st.lists(st.none() | st.text(max_size=9)), st.integers(1, 7))
def test_equal_keys_share_a_partition_and_rows_without_one_take_turns(keys: list[str | None], partitions: int) -> None:
    wanted = [
        number % partitions if key is None else (hash_of(key.encode()) & 0x7FFFFFFF) % partitions
        for number, key in enumerate(keys)
    ]
    assert partitions_of(pa.chunked_array([keys], pa.string()), partitions).tolist() == wanted


def test_whole_numbers_are_keys_in_decimal() -> None:
    numbers = [0, -1, 10**18]
    wanted = partitions_of(pa.array(list(map(str, numbers))), 5)
    assert partitions_of(pa.array(numbers, pa.int64()), 5).tolist() == wanted.tolist()


def test_a_java_producer_s_records_lie_in_these_partitions(
    access: Access, topic: Callable[[int], str], tmp_path: Path
) -> None:
    (tmp_path / "Partitions.java").write_text(JAVA)
    keys = ["", "a", "AA", "wörter", "ключ", "😀", *(f"key-{number}" for number in range(200)), "long " * 50]
    command = ["java", "-cp", f"{jars('broker')}/*", str(tmp_path / "Partitions.java"), access.bootstrap, topic(12)]
    text = "".join(f"{key}\n" for key in keys)
    done = subprocess.run(command, input=text, text=True, encoding="utf-8", capture_output=True, check=True)
    assert partitions_of(pa.array(keys), 12).tolist() == list(map(int, done.stdout.split()))
