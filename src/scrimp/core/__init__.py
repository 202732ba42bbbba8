"""The nouns of scrimp: frozen dataclasses with units in their names, standard library alone.

JobSpec -> Candidate -> Plan | Rejected(reason) -> chosen Plan -> RunEvent* -> LedgerEntry* -> Report
"""
