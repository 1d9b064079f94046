"""What stands beside the code where Keyhole runs: policies, the demo, a sample source, dashboards, a systemd unit.

May import: each of its packages says so itself.
Read first: `policies/hospital.toml`.
"""
