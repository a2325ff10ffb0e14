"""What the store asks of `kschedd.api` about a manifest: its defaults, and what is wrong with it."""

from kschedd.api.objects import Raw
from kschedd.api.validation_names import dns_subdomain


def with_defaults(raw: Raw) -> Raw:
    """The manifest with the defaults of its kind filled in; what it states is left as it is."""
    return raw


def faults_of(raw: Raw) -> tuple[str, ...]:
    """What is wrong with a defaulted manifest, each fault with its path; nothing for a good one."""
    return ()


def name_faults(name: str) -> tuple[str, ...]:
    """What is wrong with the name of a pod."""
    if not name:
        return ("metadata.name: Required value: name or generateName is required",)
    return tuple(f'metadata.name: Invalid value: "{name}": {fault}' for fault in dns_subdomain(name))
