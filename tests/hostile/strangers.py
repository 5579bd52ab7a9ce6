"""Files that name security keys, templates, code, programs, hosts and variables; `check` shall leave all alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from streamgauge.descriptions.kafka_security import KEYS
from tests.hostile.draw import EVENTS, MARK, REFERENCE, VARIABLE, Draw, checked, sound

#: keys of librdkafka that load code, start programs, or name another broker
BARRED = [
    "plugin.library.paths", "bootstrap.servers", "metadata.broker.list", "ssl.engine.location", "ssl.providers",
    "sasl.kerberos.kinit.cmd", "oauth_cb", "error_cb", "debug", "Plugin.Library.Paths", "plugin.library.paths ",
    "sasl.oauthbearer.token.refresh.cb", "client.id", "enable.random.seed", "ssl_key", "",
]  # fmt: skip
OTHERS_SQL = [
    "copy (select 1) to 'ran-sql'", "select * from read_text('f.csv')", "attach 'ran-sql.db'", "install httpfs",
    "select 1; copy (select 2) to 'ran-sql'", "marker.sql", "select * from range(1000000000000)", "set threads = 64",
    "select * from read_csv('http://HOST/x')", "pipe.sql",
]  # fmt: skip
#: what a template would become if one were filled in
FILLED = "1248981"
TEMPLATES = [
    "{{ 1371*911 }}", "{% raw %}{{ 1371*911 }}", "{{ var.value.x }}", REFERENCE, f"${VARIABLE}",
    f"${{env:{VARIABLE}}}", f"%({VARIABLE})s", "{{ conn.x.password }}", "$(touch ran-shell)", "`touch ran-shell`",
    "x; touch ran-shell", "${jndi:ldap://HOST/x}", "~/x", "{bootstrap}{work}", "{0.__class__}", "{nope}",
    "$((1371*911))",
    "{{ ''.__class__.__mro__ }}", "\x1b]0;x\x07", "[x](javascript:1)", "<script>1</script>", "../{{ 1371*911 }}",
]  # fmt: skip
#: names of modules whose import is seen: ours leave a file, Python's own print a poem or open a browser
MODULES = [
    "marker_module:thing", "marker_package.sub:thing", "marker_package.sub:a.b", "marker_module", "marker_package.sub",
    "this:d", "antigravity:x", "./m:x", ":", "a:b", "marker_module:", ":thing", "os:system", "__main__:x",
    "marker_module:thing:thing", "..marker_module:thing", "marker-module:thing",
]  # fmt: skip
POEM = "Namespaces are one honking"


def job(**keys: Any) -> Any:
    return {"name": "j", "engine": "job", "bootstrap": "HOST", "command": ["./marker.sh"], **keys}


def security_keys(random: random.Random) -> Draw:
    """A job whose `security` has keys of librdkafka that are allowed, barred or unknown, with values of any kind."""
    values = [
        "./libmarker.so", "HOST", "x", REFERENCE, "${NOT_SET}", MARK, f"http://u:{MARK}@HOST/", "SASL_SSL",
        "PLAIN",
        "./marker.sh", "/dev/zero", "pipe", "", None, True, -1, 2**70, [MARK], {"password": MARK}, float("nan"),
    ]  # fmt: skip
    likely = ["security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location", "ssl.key.pem"]
    groups = random.choice([[likely], [sorted(KEYS)], [BARRED, likely, sorted(KEYS)]])
    names = [random.choice(random.choice(groups)) for _ in range(random.randrange(1, 5))]
    raw = sound()
    raw["systems"] = [job(security={name: random.choice(values) for name in names})]
    if random.random() < 0.1:
        raw["systems"][0]["security"] = random.choice([[], MARK, None, [{"sasl.password": MARK}], {1: MARK}])
    return checked(random, raw)


def interpolations(random: random.Random) -> Draw:
    """Templates of Jinja, shells, YAML and ours in values, names and options: they are text, or refused."""
    one = random.choice(TEMPLATES)
    if random.random() < 0.25:
        commands = [
            ["check", "b.yaml", "--artifacts", one], ["runs", "show", one], ["results", "add", one], ["export", one],
            ["results", "list", "--since", one], ["gc", "--budget", one], ["analyze", one], ["init", one],
            ["generate", "f.csv", "--time", "t", "--unit", "s", "--target", "50", "--seed", "1", "--on-infeasible",
             "closest", "--out", one],
            ["run", "b.yaml", "--only", one], ["run", "b.yaml", "--only", "ingest", "--run", one],
        ]  # fmt: skip
        return Draw(random.choice(commands), checked(random, sound()).files, hidden=(FILLED,))
    raw = sound()
    raw["systems"] = [random.choice([{"name": "s", "engine": "known"}, {"name": "s"}, job(environment={"A": "x"})])]
    raw |= random.choice([{}, {"nightly": {"webhook": {"url": "http://HOST/x"}}}, {"description": "x"}])
    texts: list[Callable[[], object]] = [
        lambda: raw.update(description=one),
        lambda: raw["source"].update(files=f"{one}.csv"),
        lambda: raw["source"].update(files=["f.csv", one]),
        lambda: raw["systems"].append({"name": "conf", "engine": "spark", "conf": {"spark.x": one}, "master": one}),
        lambda: raw["systems"].append(job(name="env", environment={"A": one, one: "x"})),
        lambda: raw["systems"].append(job(name="words", command=["./marker.sh", one, f"--token={one}"])),
        lambda: raw.update(metrics={"sinks": [{"type": "http", "url": f"http://HOST/{one}", "options": {"a": one}}]}),
        lambda: raw["experiments"][0].update(delay={"distribution": "empirical", "profile": one, "max": "5s"}),
        lambda: _at_a_leaf(random, raw, one),
        lambda: _at_a_leaf(random, raw, one),
    ]
    for place in random.sample(texts, random.choice([1, 1, 2])):
        place()
    made = checked(random, raw, (FILLED,))
    if "/" not in one:
        made.files[f"{one}.csv"] = EVENTS
    if random.random() < 0.05:
        made.files["b.yaml"] += b"more: !!python/object/apply:os.system ['touch ran-yaml']\n"
    return made


def _at_a_leaf(random: random.Random, node: Any, text: str) -> None:
    """Puts a text at the place of a value of the file, or behind it, or at the place of a key."""
    while True:
        key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key]:
            break
        node = node[key]
    if isinstance(node, dict) and random.random() < 0.15:
        node[text] = node.pop(key)
    else:
        node[key] = random.choice([text, f"{node[key]}{text}"])


def imports(random: random.Random) -> Draw:
    """Names of modules wherever a name may stand: `check` imports none."""
    raw, own = sound(), random.choice(MODULES)
    places: list[Callable[[], object]] = [
        lambda: raw["systems"][0].update(engine=own),
        lambda: raw["systems"].append(job(engine=own)),
        lambda: raw["systems"].append({"name": "p", "engine": "spark", "python": own}),
        lambda: raw["workloads"][0].update(query=own),
        lambda: raw["source"].update(format=own),
        lambda: raw["source"].update(expectations=[own]),
        lambda: raw.update(search={"verdict": own}),
        lambda: raw["experiments"][0].update(delay={"distribution": own, "max": "5s"}),
        lambda: raw.update(metrics={"sinks": [{"type": own}]}),
        lambda: raw.update(nightly={"notifiers": [{"notifier": own.replace(":", "."), "arguments": {"a": MARK}}]}),
    ]
    for place in random.sample(places, random.choice([1, 1, 1, 2, 4])):
        place()
    return checked(random, raw, (MARK, POEM))


def stranger(random: random.Random, host: str = "127.0.0.1:1") -> Draw:
    """A benchmark file that names code, programs, libraries, hosts and variables; `check` shall leave all alone."""
    raw, own = sound(), random.choice(MODULES)
    far = random.choice(["gs://HOST/x", "s3://no/x", f"s3a://user:{MARK}@no/x", "hdfs://HOST/x", "abfs://a@HOST/x"])
    variable = random.choice([REFERENCE, "${HOME}", "${NOT_SET}", *TEMPLATES[:2], "$(touch ran-shell)"])

    def system(**keys: Any) -> None:
        raw["systems"] = [{"name": "s", "engine": "known"} | keys]

    def a_job(**keys: Any) -> None:
        raw["systems"] = [job(command=["./marker.sh", variable], **keys)]

    url = random.choice(
        ["http://HOST/x", "https://HOST", "javascript:x", "file:///etc/passwd", f"http://u:{MARK}@HOST/"]
    )
    kinds: list[Callable[[], object]] = [
        lambda: a_job(security={"sasl.password": variable, "security.protocol": "SASL_PLAINTEXT"}),
        lambda: a_job(environment={"LD_PRELOAD": "./libmarker.so"}),
        lambda: a_job(answer={"sql": random.choice(OTHERS_SQL), "key": ["v"]}),
        lambda: system(engine=own),
        lambda: system(engine="spark", conf={"spark.jars": "http://HOST/x.jar"}, master="spark://HOST"),
        lambda: system(engine="spark", python="./marker.sh", checkpoints=far),
        lambda: system(engine="flink", flink_home=random.choice([".", far]), conf={"env.java.opts": variable}),
        lambda: raw.update(search={"verdict": own}),
        lambda: raw["experiments"][0].update(delay={"distribution": own, "max": "5s"}),
        lambda: raw["experiments"][0].update(
            delay={"distribution": "empirical", "profile": random.choice([far, "pipe"])}
        ),
        lambda: raw.update(metrics={"sinks": [{"type": random.choice([own, "http"]), "url": url}]}),
        lambda: raw.update(metrics={"sinks": [{"type": "graphite", "host": "127.0.0.1", "port": 9}]}),
        lambda: raw.update(nightly={"webhook": {"url": url}, "notifiers": [{"notifier": "marker_package.sub.Thing"}]}),
        lambda: raw["source"].update(
            files=random.choice([far, ["f.csv", far], TEMPLATES[0] + ".csv", "file:///dev/zero"])
        ),
        lambda: raw["source"].update(expectations=[far]),
        lambda: raw.update(replay={"remote": ["HOST"], "cafile": far, "token_variable": "HOME"}),
        lambda: raw.update(description=random.choice(TEMPLATES)),
    ]
    for kind in random.sample(kinds, random.choice([1, 1, 2, 3])):
        kind()
    made = checked(random, raw)
    made.files["b.yaml"] = made.files["b.yaml"].replace(b"HOST", host.encode())
    return made
