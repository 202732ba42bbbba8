"""Energy meters: what the cards' and the processor's own counters say while a run trains.

watch.py       opens the meters that this machine has, reads them, closes them
nvml.py        the cards, by NVIDIA's library: an energy counter, else power that is sampled
smi.py         the cards, by the nvidia-smi command, where the library is not installed
rapl.py        CPU packages and their memory, by the kernel's powercap files
tracker.py     the whole process as codecarbon estimates it, for those who ask
sampling.py    power to energy, and the thread that asks now and then
"""
