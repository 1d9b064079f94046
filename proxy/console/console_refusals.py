"""The texts of the console's own refusals."""

from proxy.rest.request_refusals import HttpRefusal


def refuse_wrong_login() -> HttpRefusal:
    """Return the refusal of a wrong name, password or token. The text does not say which of them is wrong."""
    return HttpRefusal("KH401", "authentication failed", hint="Use the name and password of psql, or a token of REST.")


def refuse_wrong_owner_token() -> HttpRefusal:
    """Return the refusal of a token that is not the owner's."""
    hint = "Use the token whose SHA-256 is owner_token_sha256 in [server.console]."
    return HttpRefusal("KH401", "that is not the owner's token", hint=hint)


def refuse_ended_session() -> HttpRefusal:
    """Return the refusal of a request by a page's script after the session has ended."""
    return HttpRefusal("KH401", "the session is over", hint="Log in again at /console/login.")


def refuse_other_site() -> HttpRefusal:
    """Return the refusal of a request that has no origin, or comes from another site's page."""
    return HttpRefusal(
        "KH408",
        "the request does not come from this site's pages",
        hint="Send it from a page of the console. Programs use REST, described at /api/docs.",
        status=403,
    )


def refuse_missing_page() -> HttpRefusal:
    """Return the refusal of an address that has no page, or a page that this person may not see."""
    return HttpRefusal("KH408", "there is no such page", hint="Begin at /console.", status=404)


def refuse_unreadable_form() -> HttpRefusal:
    """Return the refusal of a form that cannot be read."""
    return HttpRefusal("KH408", "the form cannot be read", hint="Send it from the page that shows it.", status=400)
