"""Creates the table of judgements of a series' changes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "judgements",
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("series_key", sa.String(16), nullable=False),
        sa.Column("changed_at", sa.String(40), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("magnitude", sa.Float, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
    )
    op.create_index("judgements_of_series", "judgements", ["series_key", "changed_at"])


def downgrade() -> None:
    op.drop_table("judgements")
