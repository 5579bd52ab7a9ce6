"""Values of a topic's records as lines of text, which the text reader then takes: JSON objects, or lines of fields."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.base.errors import UserError
from streamgauge.descriptions.schema_registry import REGISTERED, SchemaRegistry
from streamgauge.streams.kafka import avro
from streamgauge.streams.kafka.encoded import Encoded, Prefixed, on_one_line
from streamgauge.streams.kafka.registry import Registry


def decoder_of(form: str, registry: SchemaRegistry | None = None, writer_schema: str | None = None) -> Decoder:
    """Returns the decoder of a format; one of REGISTERED needs the registry, avro the schema. Raises UserError."""
    if form in REGISTERED and registry is not None:
        return Encoded(Prefixed(REGISTERED[form], Registry(registry)))
    if writer_schema is None:
        return Line() if form == "line" else Json()
    try:
        return Encoded(avro.reader(writer_schema))
    except ValueError as problem:
        raise UserError(f"writer_schema: {problem}") from None


class Json:
    """JSON objects. A raw line end stands between their parts only, where a blank says the same."""

    def lines(self, values: Sequence[bytes]) -> tuple[list[bytes], dict[int, str]]:
        whole = b"".join(values)  # to look at all at once is quick
        if b"\n" not in whole and b"\r" not in whole:
            return list(values), {}
        return [on_one_line(value) for value in values], {}


class Line:
    """Lines of text, with or without a line end behind them."""

    def lines(self, values: Sequence[bytes]) -> tuple[list[bytes], dict[int, str]]:
        texts = [value.removesuffix(b"\n").removesuffix(b"\r") for value in values]
        reasons = {at: "several lines" for at, text in enumerate(texts) if b"\n" in text}
        return [on_one_line(text) if at in reasons else text for at, text in enumerate(texts)], reasons


#: reads values of one format
Decoder = Encoded | Json | Line
