"""scrimp: a fine-tuned LLM for the least money that does the job, with the working shown."""

__version__ = "0.1.0"
