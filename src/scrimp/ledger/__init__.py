"""The append-only record of money and runs.

    RunEvent* --history--> RunHistory --bill--> LedgerEntry* --store--> Ledger --sums--> what was spent

`store.py` is the way in. What was spent is the sum of the entries and nothing else; there is no counter to drift, and
the database itself refuses updates and deletions.
"""
