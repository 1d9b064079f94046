"""Rules for the credentials of analysts: verifiers, tokens and client certificates."""

import re

from planner.catalog.fault import Fault, Faults
from planner.policy.sections import AnalystSection, PolicyDocument

_VERIFIER = re.compile(r"SCRAM-SHA-256\$\d{1,9}:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=")
_TOKEN = re.compile(r"[0-9a-f]{64}")


def find_analyst_faults(place: tuple[str, ...], analyst: AnalystSection) -> Faults:
    """Yield a fault for a password verifier or a token of an unknown form."""
    if not _VERIFIER.fullmatch(analyst.password):
        hint = "Run keyhole passwd and paste what it prints; the password itself is never stored."
        yield (*place, "password"), Fault("KH002", "is not a SCRAM-SHA-256 verifier", hint=hint)
    if analyst.token_sha256 is not None and not _TOKEN.fullmatch(analyst.token_sha256):
        hint = "Write the sha256 of the bearer token as 64 hexadecimal digits."
        yield (*place, "token_sha256"), Fault("KH002", "is not a sha256 in hex", hint=hint)


def find_token_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for analysts with the same token, which would not identify one of them."""
    holders: dict[str, str] = {}
    for name, analyst in policy.analysts.items():
        if analyst.token_sha256 is not None and holders.setdefault(analyst.token_sha256, name) != name:
            fault = f"is the token of analysts.{holders[analyst.token_sha256]} too"
            hint = "Make one for each analyst with keyhole passwd --token; it says who asks."
            yield ("analysts", name, "token_sha256"), Fault("KH002", fault, hint=hint)


def find_certificate_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for analysts whose certificate is never verified, or who could log in without it."""
    verified = policy.server.tls is not None and policy.server.tls.client_ca is not None
    for name, analyst in policy.analysts.items():
        place = ("analysts", name, "certificate_name")
        if analyst.certificate_name is None:
            continue
        if not verified:
            hint = "Set client_ca in [server.tls] to the authority that signed the certificate."
            yield place, Fault("KH002", "needs an authority that client certificates are checked against", hint=hint)
        if analyst.token_sha256 is not None:
            hint = "Remove token_sha256, or make an analyst without certificate_name for REST."
            yield (
                place,
                Fault("KH002", "is not checked over REST, where token_sha256 alone lets the analyst in", hint=hint),
            )
