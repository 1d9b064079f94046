"""When an analyst's client certificate is really asked for."""

from collections.abc import Iterator

from planner.catalog.fault import Fault
from planner.policy.sections import PolicyDocument


def certificates_not_asked_for(policy: PolicyDocument) -> Iterator[tuple[tuple[str, ...], Fault]]:
    """The analysts whose certificate nobody would verify, or who could come in without it."""
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
            yield place, Fault("KH002", "would not be asked for by REST, which the token lets in", hint=hint)
