"""One file per tuning method: what it trains, what it stores, what it allows."""
