"""Parameters of the Nexmark event generator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from streamgauge.base.field_types import Delay, Model, Ratio, Seed
from streamgauge.base.units import Duration

_Rate = Annotated[int, Field(gt=0, le=1_000_000_000)]
_LARGEST_S = 9.2e9  # seconds that fit into 64 bits of nanoseconds


class Nexmark(Model):
    """Parameters of the Nexmark event generator; the defaults are those of Apache Beam's suite."""

    events: Annotated[int, Field(gt=0, lt=2**42)] = Field(default=100_000, description="number of events")
    seed: Seed = Field(default=1, description="seed of the events: the same seed gives the same events")
    base_time: datetime = Field(default=datetime(2015, 7, 15, tzinfo=UTC), description="event time of event 0")
    rate: _Rate = Field(default=10_000, description="events per second of event time")
    next_rate: _Rate | None = Field(
        default=None, description="a second rate: the generator then changes between the two"
    )
    rate_shape: Literal["square", "sine"] = Field(
        default="sine", description="shape of the change to next_rate and back: sine in ten steps, or square in two"
    )
    rate_period: Delay = Field(default=Duration.parse("600s"), description="length of one change to next_rate and back")
    person_proportion: PositiveInt = Field(
        default=1, description="persons among every person_proportion + auction_proportion + bid_proportion events"
    )
    auction_proportion: PositiveInt = Field(default=3, description="auctions among as many events")
    bid_proportion: PositiveInt = Field(default=46, description="bids among as many events")
    person_bytes: Annotated[int, Field(ge=0, le=10_000)] = Field(default=200, description="average size of a person")
    auction_bytes: Annotated[int, Field(ge=0, le=10_000)] = Field(default=500, description="average size of an auction")
    bid_bytes: Annotated[int, Field(ge=0, le=10_000)] = Field(default=100, description="average size of a bid")
    hot_auction_ratio: Ratio = Field(
        default=2, description="ratio n: a bid names the hot auction with probability 1 - 1/n"
    )
    hot_seller_ratio: Ratio = Field(
        default=4, description="ratio n: an auction names the hot seller with probability 1 - 1/n"
    )
    hot_bidder_ratio: Ratio = Field(
        default=4, description="ratio n: a bid names the hot bidder with probability 1 - 1/n"
    )
    hot_channel_ratio: Ratio = Field(
        default=2, description="ratio n: a bid names a hot channel with probability 1 - 1/n"
    )
    hot_every: Ratio = Field(
        default=100, description="distance between hot ids: the hot one is the newest multiple of it"
    )
    in_flight_auctions: Ratio = Field(
        default=100, description="number of the latest auctions from which a bid draws one that is not hot"
    )
    active_people: Ratio = Field(
        default=1000, description="number of the latest persons from which one that is not hot is drawn"
    )
    id_lead: NonNegativeInt = Field(default=10, description="number of ids that may be named before they exist")
    first_id: NonNegativeInt = Field(default=1000, description="smallest id of persons and auctions")
    first_category: NonNegativeInt = Field(default=10, description="smallest id of categories")
    categories: Ratio = Field(default=5, description="number of categories")
    out_of_order_group_size: Ratio = Field(default=1, description="events are shuffled in groups of this size")

    @model_validator(mode="after")
    def _shuffled_and_zoned(self) -> Self:
        if self.out_of_order_group_size % 953 == 0:
            raise ValueError(
                f"out_of_order_group_size: found {self.out_of_order_group_size}, allowed: no multiple of 953"
            )
        if self.base_time.tzinfo is None:
            raise ValueError(f"base_time: found {self.base_time}, allowed: a time with its offset, such as …Z")
        slowest = min(self.rate, self.next_rate or self.rate)
        first = self.base_time.timestamp()
        if max(-first, first + self.events / slowest) > _LARGEST_S:
            raise ValueError(
                f"base_time: found {self.base_time}, allowed: such that all events lie between 1678 and 2261"
            )
        steps = {"sine": 10, "square": 2}[self.rate_shape]
        if self.next_rate and self.rate_period.seconds < steps:
            raise ValueError(
                f"rate_period: found {self.rate_period}, allowed: at least {steps}s, a second for each step"
            )
        return self
