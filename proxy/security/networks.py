"""The networks of addresses, for limits that count several addresses as one."""

from ipaddress import IPv6Address, ip_address

_V6_NETWORK_BITS = 64  # the prefix of one subscriber, who has all of its addresses


def find_network(address: str) -> str:
    """Return the network under which an address is counted: the address itself, or the first 64 bits of IPv6."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(known, IPv6Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(IPv6Address(int(known) >> (128 - _V6_NETWORK_BITS) << (128 - _V6_NETWORK_BITS)))
