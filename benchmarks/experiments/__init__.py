"""The experiments of MIDE, ProBE and MiM, run with Keyhole's mechanisms beside the published ones."""
