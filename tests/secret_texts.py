"""Addresses and settings that hold a secret, as users and drivers write them, and ordinary text that holds none.

``SECRET`` is the place of the secret; `plant` puts one there.
"""

from __future__ import annotations

import re

SECRET = "Hunter2xQ9z"  # noqa: S105  # the secret that must never be printed

ADDRESSES = (
    # URLs of SQLAlchemy and libpq
    "postgresql://ann:SECRET@db/gl", "postgresql+psycopg://ann:SECRET@db:5432/gl", "postgres://ann:SECRET@db/gl?sslmode=require",
    "postgresql://ann:p%40SECRET@db/gl", "postgresql://ann:a/SECRET@db/gl", "postgresql://ann:a@SECRET@db/gl", "postgresql://:SECRET@db/gl",
    "postgresql://ann@db/gl?password=SECRET", "postgresql://ann@db/gl?sslmode=verify-full&sslpassword=SECRET&connect_timeout=5",
    "postgresql://db/gl?user=ann&pass%77ord=SECRET", "postgresql://db/gl?%70%61%73%73%77%6f%72%64=SECRET", "postgresql://db/gl?pass%2577ord=SECRET",
    "postgresql://ann:SECRET@h1:5432,h2:5432/gl", "mysql+pymysql://ann:SECRET@db/gl", "oracle+cx_oracle://ann:SECRET@db/?service_name=gl",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7BSQL+Server%7D%3BUID%3Dann%3BPWD%3DSECRET", "snowflake://ann:SECRET@acct/db/schema",
    "host=db user=ann password=SECRET dbname=gl", "host=db password='SECRET with blanks' user=ann", "host=db sslpassword=SECRET sslkey=/k.pem",
    "redis://:SECRET@cache:6379/0", "mongodb+srv://ann:SECRET@cluster0.example.net/?retryWrites=true", "amqp://guest:SECRET@mq:5672/%2f",
    # JDBC
    "jdbc:postgresql://db:5432/gl?user=ann&password=SECRET", "jdbc:postgresql://ann:SECRET@db:5432/gl", "jdbc:mysql://ann:SECRET@db:3306/gl",
    "jdbc:mysql://db:3306/gl?user=ann&password=SECRET&useSSL=true", "jdbc:mysql://address=(host=db)(user=ann)(password=SECRET)/gl",
    "jdbc:mariadb://db/gl?user=ann&password=SECRET", "jdbc:oracle:thin:ann/SECRET@db:1521:gl", "jdbc:oracle:thin:ann/SECRET@//db:1521/gl",
    'jdbc:oracle:thin:ann/"SECRET"@tns', "jdbc:oracle:oci:ann/SECRET@gl", "jdbc:sqlserver://db:1433;databaseName=gl;user=sa;password=SECRET;encrypt=true",
    "jdbc:sqlserver://db:1433;user=sa;password={SECRET;}};encrypt=true", "jdbc:sqlserver://db;keyStoreSecret=SECRET;clientKeyPassword=x",
    "jdbc:db2://db:50000/GL:user=ann;password=SECRET;", "jdbc:snowflake://acct.snowflakecomputing.com/?user=ann&password=SECRET&warehouse=w",
    "jdbc:snowflake://acct/?user=ann&private_key_pwd=SECRET", "jdbc:redshift://c:5439/gl?UID=ann&PWD=SECRET", "jdbc:teradata://db/USER=ann,PASSWORD=SECRET",
    "jdbc:databricks://h:443;httpPath=/sql;AuthMech=3;UID=token;PWD=SECRET", "jdbc:trino://h:443/hive?user=ann&accessToken=SECRET",
    "jdbc:bigquery://https://h:443;OAuthType=2;OAuthAccessToken=SECRET;ProjectId=p", "jdbc:h2:tcp://db/gl;USER=ann;PASSWORD=SECRET",
    "jdbc:sap://db:30015/?user=ann&password=SECRET", "jdbc:clickhouse://db:8123/gl?user=ann&password=SECRET", "jdbc:hive2://h:10000/d;user=ann;password=SECRET",
    # files in the cloud
    "s3a://AKIAEXAMPLE:SECRET@bucket/gl", "fs.s3a.secret.key=SECRET", "spark.hadoop.fs.s3a.secret.key: SECRET", "fs.s3a.access.key = SECRET",
    "spark.hadoop.fs.s3a.session.token=SECRET", "fs.azure.account.key.acct.dfs.core.windows.net=SECRET", "fs.azure.account.oauth2.client.secret: SECRET",
    "https://acct.blob.core.windows.net/c?sv=2024&sp=r&sig=SECRET", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=SECRET;EndpointSuffix=x",
    "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey=SECRET", "fs.gs.auth.service.account.private.key=SECRET",
    "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=SECRET&X-Amz-Date=1", "aws_secret_access_key = SECRET", "AWS_SECRET_ACCESS_KEY=SECRET",
    # Kafka and Spark
    "'kafka.sasl.password' = 'SECRET'", "'kafka.ssl.key.password'='SECRET', 'topic'='orders'", "kafka.ssl.truststore.password=SECRET",
    "'kafka.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required username=\"ann\" password=\"SECRET\";'",
    'sasl.jaas.config=org.x.ScramLoginModule required username="ann" password="SECRET";', r'"sasl.jaas.config": "x required password=\"SECRET\";"',
    "'kafka.sasl.oauthbearer.config' = 'x', 'kafka.client.secret' = 'SECRET'", "spark.authenticate.secret SECRET".replace(" ", "="), "spark.ssl.keyPassword=SECRET",
    "sc://spark:15002/;token=SECRET;user_id=ann", "basic.auth.user.info=ann:SECRET".replace("basic.auth.user.info=ann:", "schema.registry.basic.auth.password="),
    # http
    "https://ann:SECRET@catalog.example/v1", "Authorization: Bearer SECRET", "Authorization: Basic SECRET", "'Authorization': 'Bearer SECRET'",
    "curl -H 'Authorization: token SECRET'", "got 401 for Bearer SECRET", '"X-Api-Key": "SECRET"', "https://catalog.example/v1?api_key=SECRET&limit=5",
    "https://h/v1?url=jdbc%3Apostgresql%3A%2F%2Fann%3ASECRET%40db%2Fgl", "https://h/login?next=%2Fx&access_token=SECRET",
    # documents
    '{"user": "ann", "password": "SECRET"}', "{'user': 'ann', 'password': 'SECRET'}", "{user: ann, password: SECRET, schema: fin}", "password: SECRET",
    "  - client_secret: 'SECRET'  # from the portal", "credential_ref: ann:SECRET", "password: |\n  SECRET\n", "password:\n    SECRET\nschema: fin",
    "private_key: |\n  -----BEGIN PRIVATE KEY-----\n  SECRET\n  -----END PRIVATE KEY-----\n", "key -----BEGIN RSA PRIVATE KEY-----\\nSECRET\\n-----END RSA PRIVATE KEY-----",
    # passwords that look like a port, or contain quotes and blanks
    "postgresql://ann:12345,SECRET@db", "postgresql://ann:123/SECRET@db/gl", "jdbc:mysql://ann:1234/SECRET@db:3306/gl", "postgresql+psycopg://ann:SECRET'q@db/gl",
    'postgresql://ann:"SECRET"@db/gl', "postgresql://ann:SECRET with blanks@db/gl", "postgresql://ann:it's SECRET@db:5432/gl", "jdbc:oracle:thin:/SECRET@db",
    "jdbc:oracle:thin:ann/pw SECRET@db:1521:gl", "jdbc:oracle:thin:ann/it's-SECRET@db", "jdbc:sqlserver://db;user=ann;Password = SECRET", "jdbc:sqlserver://db; password = SECRET; encrypt=true",
    "jdbc:sqlserver://db;keyVaultProviderClientKey=SECRET", "Server=db;User Id=ann;Secret Key=SECRET",
    # other names
    "fs.azure.sas.container.acct.blob.core.windows.net=SECRET", "fs.azure.sas.fixed.token.acct: SECRET", "basic.auth.user.info=ann:SECRET",
    "'kafka.schema.registry.basic.auth.user.info' = 'ann:SECRET'", "spark.redis.auth=SECRET", "masterKey: SECRET", "hmac_key: SECRET", "dbpass=SECRET", "userpass: SECRET",
    "Ocp-Apim-Subscription-Key: SECRET", "{name: password, value: SECRET}", '[{"name": "fs.s3a.secret.key", "value": "SECRET"}]', "- name: password\n  value: SECRET\n",
    "psql --host db --password SECRET --user ann", "spark-submit --token 'SECRET' job.py", "fs.s3a.secret.key SECRET", "spark.hadoop.fs.s3a.secret.key    SECRET",
    # tokens of services, wherever they are
    "AKIAIOSFODNN7EXAMPLE:SECRET", "used glpat-SECRET12345678 for it", "hf_aSECRETabcdefghijklmnopqrstuvwx", "npm_aSECRETabcdefghijklmnopqrstuvwx", "pypi-AgEIcHlwaS5SECRET",
    "sk-ant-api03-SECRET-abcdef", "sk-proj-SECRETabcdefghij",
    # SQL
    "'kafka.sasl.password' 'SECRET'", "'kafka.sasl.password' = N'SECRET'", "'kafka.sasl.password' = ('SECRET')", "'kafka.sasl.password' = CONCAT('a', 'SECRET')",
    "'kafka.sasl.password' = \"SECRET\"", "`kafka.sasl.password` = 'SECRET'", "'kafka.sasl.password' = '${PASSWORD:-SECRET}'", "'kafka.sasl.password' = '${PASSWORD:?SECRET}'",
    "'kafka.sasl.password' = '${SECRET'",
    # YAML
    "password: !!str SECRET", "password: &pw SECRET", "passwords: [SECRET, x]", "api key: SECRET", "Client Secret: SECRET", r'"p\u0061ssword": SECRET', r'"pass\x77ord": "SECRET"',
    "connect(user='ann', password='SECRET', host='db')", "PGPASSWORD=SECRET psql", "token=SECRET", "dapi0123456789abcdef0123456789abcdef SECRET".replace(" SECRET", " token=SECRET"),
    # without a scheme, a host or an @; a password where a port is expected
    "ann:SECRET@db:5432/gl", "ann:SECRET@db/gl", "postgresql:ann:SECRET@db/gl", "postgresql:/ann:SECRET@db/gl", "postgresql://ann:SECRET/gl", "postgresql://ann:SECRET:5432/gl",
    "postgresql://ann:SECRET", "postgresql://ann:@SECRET@db/gl", "jdbc:oracle:thin:u/SECRET", 'jdbc:oracle:thin:"U"/"SECRET"@//db/gl', "jdbc:oracle:thin:u /SECRET@db", "oracle:thin:u/SECRET@db",
    "https://xSECRET8a7b6c5d4e@catalog/v1", "https://hooks.slack.com/services/T000/B000/SECRET",
    # blanks and braces in the settings of drivers
    "jdbc:sqlserver://db;user=sa;password=my SECRET;encrypt=true", "jdbc:postgresql://db/gl?user=ann&password=my SECRET&x=1", "jdbc:sqlserver://db;user=sa;pwd={a}}bSECRET};x=y",
    "jdbc:postgresql://db/gl?user=ann&password =SECRET", "jdbc:h2:file:/x;CIPHER=AES;PASSWORD=file SECRET;x=y", "host=db password = SECRET user=ann", "jdbc:teradata://db/LOGDATA=SECRET,USER=u",
    "host=db password\u00a0=\u00a0SECRET",
    # names with a typo, in other languages, and other names
    "pasword: SECRET", "kafka.sasl.passwrod=SECRET", "passwort: SECRET", "fs.s3a.secrt.key=SECRET", "client_sercet: SECRET", "kennwort=SECRET", "contraseña: SECRET", "senha=SECRET", "mot_de_passe: SECRET",
    "x-functions-key: SECRET", "Cookie: session=SECRET; path=/", "Set-Cookie: sid=SECRET; HttpOnly", "'kafka.delegation.token.hmac'='SECRET'", "'kafka.sasl.oauthbearer.jwt' = 'SECRET'",
    # a missing blank, and settings in a line of text
    "options:\n  password:SECRET", "minio at h:9000, access_key: SECRET, region: x", "{password: 'SECRET", "password: # from the portal\n  SECRET",
    # Python, XML, SQL
    '.option("password", "SECRET")', "spark.conf.set('fs.s3a.secret.key', 'SECRET')", "{'password': b'SECRET'}", "Login(password=b'SECRET')", "{'password': SecretStr('SECRET')}", '"password": ["SECRET"]',
    "<password>SECRET</password>", "<property><name>fs.s3a.secret.key</name>\n  <value>SECRET</value></property>", "ALTER ROLE ann PASSWORD 'SECRET'", "CREATE USER ann IDENTIFIED BY 'SECRET'",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nSECRET\n-----END PGP PRIVATE KEY BLOCK-----",
)  # fmt: skip

ORDINARY = (
    "option 'password' looks like a secret", "option 'kafka.sasl.password': the value is empty", "o.token = s.token", "ON a.token=b.token AND a.pass = b.pass",
    "orders.password IS NULL", "write {\"user\": \"...\", \"password\": \"...\"} or user:password", "check the user and the password (PGPASSWORD, ~/.pgpass)",
    "unexpected token: ')'", "wrong password: try again", "FATAL: password authentication failed for user \"ann\"", "basic authentication of users",
    "Bearer certificates are not used", "postgresql://ann@db:5432/gl?sslmode=require", "http://host:8080/path?email=a@b", "http://[::1]:8080/x@y",
    "https://example.com/a:b/c@2x.png", "s3a://bucket/gl/period=2026-01", "jdbc:postgresql://db:5432/ledger", "jdbc:oracle:thin:@//db:1521/gl", "sqlite:///.weft/weft.db",
    "unknown token 'YYY'", "tokens are 'YYYY', 'QQ' and 'MM'", "natural_key_columns: [order_id]", "fs.s3a.aws.credentials.provider=org.x.Provider",
    "credential_ref: env:LEDGER_LOGIN", "credential_ref: file:/run/secrets/db", "'kafka.sasl.password' = '${KAFKA_PASSWORD}'", "password=***", "password=<password>",
    "secretary=Ann; keyboard=qwertz", "passwordless=true", "sslkey=/home/ann/key.pem passfile=/home/ann/.pgpass", "token.endpoint.url=https://h/token",
    "W1015: secret in options", "100 % of 50%", "a%20b%3Dc", "key: value", "primary key = order_id", "ssl.truststore.location=/etc/ssl", "it has 'id', 'password', 'name'",
    "weft run fx_reporting -p 2026-01", "error[W1311]: the path '../x' leads out of '/data'", "amount = 5 AND region = 'EMEA'", "the sum of key = 'a' and sign = 'b'",
    # addresses of hosts with ports
    "http://localhost:8080/a@b", "https://host:443/@scope/package@1.2", "postgresql://db:5432/gl (ask ann@example.com)", "mongodb://h1:27017,h2:27017/gl?authSource=a@b",
    '{"url": "jdbc:postgresql://db:5432/gl", "mail": "ann@example.com"}', "['http://db:5432', 'ann@example.com']", "<url>redis://h:6379/0</url><mail>ann@example.com</mail>",
    "postgresql://user@host:port/db and ann@example.com", "jdbc:oracle:thin:/@db", "https://example.com/: ask ann@example.com", "see http://h:1/, and ann@h",
    # names of columns and settings
    "pass_count=5; bypass=1; compass = north", "token_id=7 AND o.monkey=3", "SUM(pass_count) AS passes", "encompass: all", "first.key=1", "subscription_key: plan_id", "client_key=7", "keyword=x",
    "webmaster_keyword=a", "fs.azure.sas.token.renew.period.for.streams=120", "fs.azure.sas.token.provider.type=org.x.Y", "basic.auth.credentials.source=USER_INFO", "password_count=3",
    "{name: token_id, value: 5}", "- {name: password, type: string}", "[{name: order_id, value: 7}]", "name: passwords\ntype: csv",
    # sentences
    "use --password to set it", "--password is deprecated", "--token needs a value", "-- password of the user", "--keep offsets --fresh", "fs.s3a.secret.key is not set", "spark.ssl.keyPassword has no value",
    "SELECT a.b.password pw FROM a", "columns 'password' 'name'", "sk-learn-pipeline-2024-version", "npm_config_registry", "hf_total_amount_by_region_and_month_1", "ASIA and AKIA", "task-force-one-2024-Report",
    "MIA\\xylophone C:\\users\\x41", "'kafka.sasl.password' = '${KAFKA_PASSWORD}'", "'topic' = CONCAT('a', 'b')", "'x.token' = '${env:TOKEN}'", "the api key is missing", "{key: a, value: b}",
    # what resembles an address, a typo or a call
    "postgresql://host:port/db", "postgresql://<host>:<port>/<db>", "jdbc:postgresql://{{host}}:{{port}}/gl", "http://${HOST}:${PORT}/x", "file://C:/data", "image:tag@sha256:0a1b/x", "https://ann@catalog/v1",
    "https://reporting-team@example.com/", "a passport, a keyword and the sector", "it was passed: 5", "unexpected token: 'a1'", "wrong password: Try again",
    ".option('path', 'a1')", "withColumn('password', 'x')", "GROUP BY (token, region)", "columns ('password', 'name')", "cookies: enabled", "spread over oracle:thin clients",
    "see jdbc:oracle:thin:@db", "user=ann and more; then stop", "10:30 ann@host:80/x", "region: x1, token_id: y2",
    "allow_empty_password=false", "password_file=/run/secrets/x", "12:30:05 ann@host", "mailto:ann@example.com", "git@github.com:org/repo.git",
)  # fmt: skip


# Values of a stream's options, with the name of the secret option: right, with a typo, or in the SQL of another system.
SQL_OPTIONS = (
    "'kafka.sasl.password' = 'SECRET'", "'kafka.sasl.password' = \"SECRET\"", "'kafka.sasl.password' 'SECRET'", "'kafka.sasl.password' = SECRET", "'kafka.sasl.password' = `SECRET`",
    "'kafka.sasl.password' = N'SECRET'", "'kafka.sasl.password' = CONCAT(UPPER('a'), 'SECRET')", "'kafka.sasl.password' = ('SECRET')", "'kafka.sasl.password' = 'a' 'SECRET'",
    "`kafka.sasl.password` = 'SECRET'", "\"kafka.sasl.password\" = 'SECRET'", "kafka.sasl.password = 'SECRET'", "'kafka.sasl.password' => 'SECRET'", "'kafka.sasl.password': 'SECRET'",
    "'kafka.sasl.password' = '${UNSET:?SECRET}'", "'kafka.sasl.password' = '${UNSET:-SECRET}'", "'kafka.sasl.password' = '${SECRET'", "'kafka.sasl.password' = -- SECRET\n 'x'",
    "'kafka.sasl.password' = 'SECRET", "'kafka.sasl.password' = \"SECRET", "'kafka.sasl.password' = a, SECRET", "'kafka.sasl.password' = a;SECRET", "'kafka.sasl.password' = 'a';'SECRET'",
    "'kafka.sasl.jaas.config' = 'x required password='SECRET';'", "'kafka.sasl.jaas.config' = 'x required username=\"ann\" password=\"SECRET\";'",
    "'properties.sasl.password' = 'it''s SECRET'", "'kafka.sasl.password' = 'a' + 'SECRET'", "'starting.offsets' = '{\"password\": \"SECRET\"}'",
)  # fmt: skip

# Entries of the options of a datasource in YAML, where the text alone does not show which part is the secret.
YAML_OPTIONS = (
    "password: SECRET", "password: !!str SECRET", "password: &pw SECRET", "password: &pw !!str 'SECRET'", r'"p\u0061ssword": SECRET', r'"pass\x77ord": "SECRET"', r'"pass\u0077ord": "it\x27s SECRET"',
    "passwords: [SECRET, x]", "passwords: [x, [SECRET]]", "passwords:\n      - x\n      - SECRET", "api key: SECRET", "'Client Secret': SECRET", "? password\n    : SECRET", "password: |\n      x\n      SECRET",
    "password: >-\n      x\n      SECRET", 'password: "SEC\\\n      RET"', "properties: [{name: password, value: SECRET}]", "properties:\n      - name: password\n        value: SECRET",
    "properties:\n      - value: SECRET\n        name: password", "properties: {value: SECRET, key: fs.s3a.secret.key}", r'address: "postgresql://ann:p\x40 SECRET@db/gl"',
    "address: postgresql://ann:SECRET\n      more@db/gl", "password: {value: SECRET}", "password: {value: [SECRET]}", "password:\n      is: SECRET\n      of: ann", "storage_options: {fs.azure.sas.c.acct: SECRET}", "masterKey: SECRET", "x: AKIAIOSFODNN7EXAMPLE:SECRET",
)  # fmt: skip


def plant(text: str) -> str:
    """Return a text with the secret in its place."""
    return re.sub(r"(?<!_)SECRET(?!_)", SECRET, text)
