"""The command line: parse, call one workflow, print. One file per verb, found by listing this folder."""
