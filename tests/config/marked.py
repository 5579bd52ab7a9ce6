"""Names of secrets, and a benchmark file with a marked one in each place that may hold one."""

from __future__ import annotations

SECRET_NAMES = (
    "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.authenticate.secret", "API_TOKEN",
    "sasl.password", "fs.azure.account.key.me.blob", "apiKey", "DB_PASSWORD", "spark.ssl.keyPassword", "x-api-key",
    "ssl.key.pem", "sasl.jaas.config", "AWS_SECRET_ACCESS_KEY", "webhook_secret", "passphrase", "Authorization",
)  # fmt: skip
MARKED = """
name: marked
description: "see https://me:Mk01secret@host/x"
source: {{files: events.csv, time: {{column: t, unit: s}}}}
experiments: [{{name: late, target_percent: 0}}]
workloads: [{{name: all, query: passthrough}}]
systems:
- name: spark
  conf: {{spark.hadoop.fs.s3a.secret.key: Mk02secret, spark.authenticate.secret: Mk03secret,
    spark.driver.extraJavaOptions: "-Dx.password=Mk04secret", spark.jdbc: "jdbc:x://me:Mk05secret@h/db"}}
- {{name: flink, engine: flink, conf: {{fs.s3a.access-key: Mk06secret}}}}
- name: job
  engine: job
  command: [python, --api-key, Mk07secret, "--token=Mk08secret", "{{bootstrap}}"]
  environment: {{ANY: Mk09secret, DSN: "postgresql://me:Mk10secret@h"}}
  bootstrap: 127.0.0.1:1
- {{name: own, engine: "{engine}", more: {{a.password: Mk20secret}}, api_token: Mk21secret}}
metrics:
  sinks:
  - {{type: http, url: "http://127.0.0.1:1/Mk11secret?api_key=Mk12secret"}}
  - {{type: "mine:Sink", url: "https://127.0.0.1/Mk22secret", 
    options: {{anything: Mk13secret, deep: [{{x: Mk14secret}}]}}}}
nightly:
  webhook: {{url: "https://hooks.example.org/services/Mk15secret"}}
  heartbeat: {{url: "https://beat.example.org/Mk16secret"}}
  notifiers: [{{notifier: a.b.C, arguments: {{hook: Mk17secret, deep: {{list: [Mk18secret]}}}}}}]
"""
MARKS = [f"Mk{number:02}secret" for number in (*range(1, 19), 20, 21, 22)]
