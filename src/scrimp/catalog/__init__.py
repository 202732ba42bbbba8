"""Facts with source and date: devices, prices, provider terms, carbon. Package data, read without network.

devices.py   one row of data/gpus.csv is one Device; names in any usual spelling
offers.py    the price snapshot as Offers, and the one query over them
terms.py     how providers bill
carbon.py    grid carbon and PUE by provider and region
local.py     this machine as a Device and an Offer
"""
