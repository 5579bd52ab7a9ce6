"""Adds a checksum to points and judgements. Rows of before have none until `results rebuild`."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("points", "judgements"):
        op.add_column(table, sa.Column("crc32", sa.String(8)))
