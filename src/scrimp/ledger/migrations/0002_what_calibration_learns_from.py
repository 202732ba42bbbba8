"""What a measured run needs to be learnt from: whose formulas foretold it, its features, the formulas' own forecast.

Rows of the first schema keep NULL there: their runs are calibrated on only while their folders exist.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: "Connection") -> None:
    """Add three columns; the append-only triggers stay as they are."""
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN scrimp_version TEXT")
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN features TEXT")
    kind = "FLOAT" if connection.dialect.name != "postgresql" else "DOUBLE PRECISION"
    connection.exec_driver_sql(f"ALTER TABLE graded ADD COLUMN formula {kind}")
