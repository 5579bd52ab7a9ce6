"""Creates the tables of series, of their points, and of the judgements on their changes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = None


def upgrade() -> None:
    names = ("benchmark", "experiment", "workload", "system", "mode", "metric", "unit")
    op.create_table(
        "series",
        sa.Column("key", sa.String(16), primary_key=True),
        *(sa.Column(name, sa.String(200), nullable=False) for name in names),
        sa.Column("machine", sa.Text, nullable=False),
    )
    op.create_table(
        "points",
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("series_key", sa.String(16), sa.ForeignKey("series.key"), primary_key=True),
        sa.Column("at", sa.String(40), primary_key=True),
        *(sa.Column(name, sa.Float) for name in ("value", "low", "high")),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("valid", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("config_hash", sa.String(64), nullable=False),
        sa.Column("software", sa.Text, nullable=False),
        sa.Column("crc32", sa.String(8)),
    )
    op.create_index("points_of_series", "points", ["series_key", "at"])
    op.create_table(
        "judgements",
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("series_key", sa.String(16), primary_key=True),
        sa.Column("changed_at", sa.String(40), primary_key=True),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("magnitude", sa.Float, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("crc32", sa.String(8)),
    )
    op.create_index("judgements_of_series", "judgements", ["series_key", "changed_at"])
