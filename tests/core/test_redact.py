"""Passwords and tokens in addresses are never shown."""

import pytest

from scrimp.core.redact import hide_secrets


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql+psycopg://ann:s3cret@host/db", "postgresql+psycopg://ann:***@host/db"),
        ("postgresql://ann:p@ss/word@host/db", "postgresql://ann:***@host/db"),
        ("https://token@hub.example/x", "https://***@hub.example/x"),
        ("postgresql://host/db?user=ann&password=s3cret", "postgresql://host/db?user=ann&password=***"),
        ("sqlite:////home/me/ledger.db", "sqlite:////home/me/ledger.db"),
    ],
)
def test_secrets_in_addresses(address, shown):
    assert hide_secrets(address) == shown
