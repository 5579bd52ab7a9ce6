"""Settings of librdkafka that a benchmark file may give: those that are data. Others load code or start programs."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from streamgauge.base import variables

#: no plugin, no callback, no command (sasl.kerberos.kinit.cmd), no engine or provider of OpenSSL, and no other broker
_ALLOWED = """
    security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password sasl.kerberos.service.name
    sasl.kerberos.principal sasl.kerberos.keytab sasl.kerberos.min.time.before.relogin sasl.oauthbearer.config
    enable.sasl.oauthbearer.unsecure.jwt sasl.oauthbearer.method sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.scope sasl.oauthbearer.extensions
    sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.grant.type sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.jwt.template.file ssl.ca.location ssl.ca.pem ssl.certificate.location
    ssl.certificate.pem ssl.key.location ssl.key.pem ssl.key.password ssl.keystore.location
    ssl.keystore.password ssl.crl.location ssl.cipher.suites ssl.curves.list ssl.sigalgs.list
    enable.ssl.certificate.verification ssl.endpoint.identification.algorithm https.ca.location https.ca.pem
"""
KEYS = frozenset(_ALLOWED.split())
#: where a client asks for a token: a host beside the broker
TOKEN_HOST = "sasl.oauthbearer.token.endpoint.url"
_SECRET = re.compile(r"password|passphrase|secret|\.pem$|token$|oauthbearer\.config$")


def _allowed(settings: Any) -> Any:
    """Refuses a setting that is not allowed, and a secret that is no ${VARIABLE}.

    It looks before anything else does, as other messages would show what they found.
    """
    if not isinstance(settings, dict):
        raise ValueError("found no keys (not shown), allowed: settings of librdkafka with their values")
    for key, value in settings.items():
        if key not in KEYS:
            hint = "; give the key bootstrap" if key in ("bootstrap.servers", "metadata.broker.list") else ""
            raise ValueError(
                f"{key}: found a key that is not for security, allowed: security.protocol, and keys of librdkafka for "
                f"sasl and ssl that are data (docs/security.md){hint}"
            )
        if _SECRET.search(key) and not variables.is_one(value):
            raise ValueError(f"{key}: found a secret (not shown), allowed: ${{VARIABLE}}, of the environment")
    return settings


Security = Annotated[dict[str, str], BeforeValidator(_allowed)]
