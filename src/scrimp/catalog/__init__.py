"""Facts with source and date: devices, prices, provider terms, carbon."""
