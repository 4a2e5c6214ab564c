use super::*;

fn redacted(text: &str) -> String {
    redact(text).0.into_owned()
}

#[test]
fn secrets_do_not_pass() {
    let filler = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
    for (text, secret) in [
        (
            format!("-----BEGIN RSA PRIVATE KEY-----\nMIIE{filler}\n-----END RSA PRIVATE KEY-----"),
            "MIIE",
        ),
        (format!("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl{filler}"), "b3Bl"),
        ("id = AKIAIOSFODNN7EXAMPLE".to_owned(), "AKIAIOSFODNN7EXAMPLE"),
        (format!("git clone https://x:ghp_{filler}@github.com"), "ghp_"),
        (format!("let t = \"github_pat_{filler}_{filler}\""), "github_pat_"),
        (format!("OPENAI = 'sk-{filler}'"), "sk-"),
        (format!("stripe sk_live_{filler}"), "sk_live_"),
        (format!("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.{filler}"), "eyJ"),
        ("db = postgres://app:hunter2@db/prod".to_owned(), "hunter2"),
        ("password = \"correct-horse\"".to_owned(), "correct-horse"),
        (
            "const TOKEN: &'static str = \"correct-horse\";".to_owned(),
            "correct-horse",
        ),
        ("\"apiKey\": 'Zm9vYmFyYmF6'".to_owned(), "Zm9vYmFyYmF6"),
        ("client_secret => 'Zm9vYmFyYmF6'".to_owned(), "Zm9vYmFyYmF6"),
        ("export DB_PASSWORD=correcthorse".to_owned(), "correcthorse"),
        ("export DB_PASSWORD=correcthorse!\n[next]".to_owned(), "correcthorse"),
        ("Authorization: Bearer abcdef123456".to_owned(), "abcdef123456"),
    ] {
        assert!(!redacted(&text).contains(secret), "{}", redacted(&text));
        assert!(redacted(&text).contains(MARK));
    }
}

/// The secrets are assembled from parts, so that secret scanners do not report this file.
#[test]
fn no_known_form_passes() {
    let any = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";
    let hex = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
    let upper = "Q1W2E3R4T5Y6U7I8O9P0A1S2D3F4G5H6J7K8L9Z0X1C2V3B4N5M6Q7W8E9R0";
    let (phrase, short) = ("s3cr3t-Passw0rd", "hunter2!");
    let tokens = [
        format!("{}{}", "AKIA", &upper[..16]),
        format!("{}{}", "LTAI", &any[..20]),
        format!("{}{}", "AIza", &any[..35]),
        format!("{}.{any}", "ya29"),
        format!("{}-{}", "GOCSPX", &any[..28]),
        format!("{}_v1_{hex}", "dop"),
        format!("{}{}", "dapi", &hex[..32]),
        format!("{}.{}", "hvs", &any[..30]),
        format!("{}.{}.{any}{any}", &any[..14], "atlasv1"),
        format!("{}_{}", "ghp", &any[..36]),
        format!("{}_{any}", "github_pat"),
        format!("{}-{}", "glpat", &any[..20]),
        format!("{}-{}", "glrt", &any[..20]),
        format!("{}_{}", "npm", &any[..36]),
        format!("{}-{any}", "pypi"),
        format!("{}_pat_{}", "dckr", &any[..27]),
        format!("{}-{}-{}", "xoxb", &hex[..12], &any[..24]),
        format!("{}{}.{}.{}", "M", &any[..23], &any[..6], &any[..38]),
        format!("{}:{}", "123456789", &any[..35]),
        format!("{}.{}.{}", "SG", &any[..22], &any[..43]),
        format!("{}{}", "SK", &hex[..32]),
        format!("{}{}", "AC", &hex[..32]),
        format!("{}-{}", "key", &hex[..32]),
        format!("{}-{any}", "sk-proj"),
        format!("{}-{any}", "sk-ant-api03"),
        format!("{}_live_{}", "sk", &any[..24]),
        format!("{}_pt_{}_{}", "lsv2", &hex[..32], &hex[..10]),
        format!("{}_oauth_{hex}", "lin"),
        format!("{}_{hex}", "napi"),
        format!("{}_{}", "e2b", &hex[..40]),
        format!("{}_{}", "sk", &hex[..48]),
        format!("{}-{}", "fc", &hex[..32]),
        format!("{}_{}", "live", &hex[..32]),
        format!("{}_{}_{}", "re", &any[..8], &any[..24]),
        format!("{}_01{}", "hcaik", &hex[..58]),
        format!("{}-01234567-0123-0123-0123-{}", "xaat", &hex[..12]),
        format!("{}.01234567-0123-0123-0123-{}", "amzn.mws", &hex[..12]),
        format!("{}.{}.{}.{}", "st", &hex[..24], &hex[..24], &hex[..32]),
        format!("2/{}/{}:{}", "1200000000000001", "1200000000000002", &hex[..32]),
        format!("{}-{}-{}", &hex[..32], &hex[..8], &hex[8..16]),
        format!("{}_{}", "whsec", &any[..32]),
        format!("{}_{}", "shpat", &hex[..32]),
        format!("{}_{}", "hf", &any[..34]),
        format!("{}_{}", "gsk", &any[..48]),
        format!("{}-1{upper}", "AGE-SECRET-KEY"),
        format!("{}8Q~{}", &any[..3], &any[..34]),
        format!("{}.{}.{any}", "eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0"),
        format!("{}_{}", "secret", &any[..43]),
        format!("{}_{}", "fo1", &any[..43]),
        format!("{}.{}.{}", "dp", "pt", &any[..43]),
        format!("{}-{}", "pul", &hex[..40]),
        format!("{}_{}", "vcp", &any[..24]),
        format!("{}_{}", "bkua", &hex[..40]),
        format!("{}-{hex}-{}", "xkeysib", &any[..16]),
        format!("{}{}.{hex}", "pat", &any[..14]),
        format!("{}_{}", "sqp", &hex[..40]),
        format!("{}_{}_{}", "sgp", &hex[..16], &hex[..40]),
        format!("{}_live_{}", "rzp", &any[..14]),
        format!("{}-{}", "API", &upper[..26]),
        format!("{}-{}-4a5b-8c7d-9e0f-{}", "sdk", &hex[..8], &hex[..12]),
        format!("access-{}-{}-4a5b-8c7d-9e0f-{}", "production", &hex[..8], &hex[..12]),
        format!("{}_{}", "rdme", &any.to_lowercase()[..40]),
        format!("1/{}:{}", "1234567890123456", &hex[..32]),
    ];
    for token in &tokens {
        for text in [
            token.clone(),
            format!("let client = connect(\"{token}\");"),
            format!("# see {token}\n"),
        ] {
            assert!(!redacted(&text).contains(token.as_str()), "{}", redacted(&text));
        }
    }
    for (text, secret) in [
        (format!("password: {phrase}\n"), phrase),
        (format!("db:\n  db_password: {phrase} # prod\n"), phrase),
        (format!("- api-key: {any}\n"), any),
        (format!("[db]\npassword = {short}\n"), short),
        (format!("aws_secret_access_key={any}\n"), any),
        (format!("spring.datasource.password={phrase}\n"), phrase),
        (format!("export DB_PASSWORD={phrase}\n"), phrase),
        (format!("export db_password='{phrase}'\n"), phrase),
        (format!("ENV API_TOKEN {phrase}\n"), phrase),
        (format!("ENV PORT=80 API_TOKEN={phrase} A=b\n"), phrase),
        (format!("ARG NPM_TOKEN={phrase}\n"), phrase),
        (format!("<password>{phrase}</password>"), phrase),
        (format!("<server.secret id=\"1\">{phrase}</server.secret>"), phrase),
        (format!("<add key=\"ApiKey\" value=\"{phrase}\" />"), phrase),
        (format!("curl -u admin:{short} https://example.com"), short),
        (format!("curl -sS --user 'admin:{short}' https://example.com"), short),
        (format!("SECRET = b\"{phrase}\""), phrase),
        (format!("secret = rb'{phrase}'"), phrase),
        (format!("AccountName=a;AccountKey={any}==;EndpointSuffix=b"), any),
        (format!("Endpoint=sb://a/;SharedAccessKey={any}="), any),
        (format!("https://a.blob.core.windows.net/b?sv=1&sig={any}%3D"), any),
        (format!("Server=a;User Id=b;Password={short};"), short),
        (
            format!("https://hooks.slack.com/services/{}/{}/{}", "T00", "B00", any),
            any,
        ),
        (format!("https://discord.com/api/webhooks/1234/{any}"), any),
        (format!("machine a.b login me password {phrase}"), phrase),
        (format!("//registry.npmjs.org/:_authToken={any}"), any),
        (format!("mongodb+srv://user:{phrase}@host/db"), phrase),
        (format!("redis://:{phrase}@host:6379"), phrase),
        (format!("headers = {{\"Authorization\": \"Bearer {any}\"}}"), any),
        (format!("-H 'X-Api-Key: {any}'"), any),
        (format!("deploy --token {any} now"), any),
    ] {
        assert!(!redacted(&text).contains(secret), "{}", redacted(&text));
    }
}

/// The ways to write a secret in settings and in code, each with its secret.
const WRITTEN: &[(&str, &str)] = &[
    // Quoted.
    ("password = \"correct horse battery\"", "horse"),
    ("password: 'pa$$w0rd-x'", "w0rd"),
    ("DB_PASSWORD=\"ab(cd)ef\"", "cd"),
    ("secret = \"<k3y>of-it\"", "k3y"),
    ("password = \"{br4ce}d-word\"", "br4ce"),
    ("password = \"quo\\\"ted-s3cret\"", "ted-s3cret"),
    ("password: 'it''s-s3cret'", "s-s3cret"),
    ("\"password\": \"p@\\u0041;:,/x y\"", "x y"),
    ("{\\\"password\\\": \\\"corr ect\\\"}", "corr"),
    // Names.
    ("pwd = \"zebra-crossing\"", "zebra"),
    ("pass: 'zebra-crossing'", "zebra"),
    ("pw: zebra-cr0ssing", "zebra"),
    ("passwd=zebra-cr0ssing", "zebra"),
    ("DB_PASSWORD=zebracrossing", "zebra"),
    ("dbPass = \"zebra crossing\"", "zebra"),
    ("hunter: 1\npassword: hunter2\n", "hunter2"),
    ("password: 90125677\n", "90125677"),
    // YAML and similar formats.
    ("db:\n  password: >-\n    zebra\n    crossing\n  user: x\n", "crossing"),
    ("- password: |\n    zebra crossing\n  user: x\n", "zebra"),
    ("password: !!str &db zebra-cr0ssing", "zebra"),
    ("- name: DB_PASSWORD\n  value: hunter2zebra\n", "hunter2zebra"),
    ("- name: DB_PASSWORD\n  value: zebracrossing\n", "zebra"),
    ("{user: x, password: hunter2}", "hunter2"),
    ("{user: x, password: zebra-cr0ssing, port: 1}", "zebra"),
    ("\"tokens\": [\"zebra one\", \"crossing two\"]", "zebra"),
    ("\"tokens\": [\"zebra one\", \"crossing two\"]", "crossing"),
    ("{\"name\": \"API_TOKEN\", \"value\": \"zebra crossing\"}", "zebra"),
    ("services:\n  environment:\n    - DB_PASSWORD=zebracrossing\n", "zebra"),
    ("[db]\npassword = my zebra is crossing ; for now\n", "zebra"),
    ("db.password=my zebra 7 crossing\n", "zebra"),
    (
        "variable \"db_password\" {\n  type = string\n  default = \"zebra crossing\"\n}",
        "zebra",
    ),
    ("password = <<-EOT\n  zebra\n  crossing\n  EOT\n", "crossing"),
    // Code.
    ("password = \"\"\"zebra\ncrossing\"\"\"", "crossing"),
    ("os.environ[\"X_TOKEN\"] = \"zebra crossing\"", "zebra"),
    ("os.environ.setdefault(\"API_KEY\", \"zebra crossing\")", "zebra"),
    ("connect(user=\"x\", password=\"zebra crossing\")", "zebra"),
    ("password: str = \"zebra crossing\"", "zebra"),
    (
        "let password: Option<String> = Some(\"zebra crossing\".into());",
        "zebra",
    ),
    ("var password string = `zebra crossing`", "zebra"),
    ("char password[32] = \"zebra crossing\";", "zebra"),
    ("requests.get(url, auth=(\"user\", \"zebra crossing\"))", "zebra"),
    ("client.setToken(\"zebra crossing\")", "zebra"),
    ("Config::new().withPassword(\"zebra crossing\")", "zebra"),
    ("new Client().basicAuth(\"user\", \"zebra crossing\")", "zebra"),
    ("password = b\"zebra crossing\"", "zebra"),
    ("let secret = r#\"zebra \"crossing\"#;", "crossing"),
    ("const token = process.env.TOKEN || \"zebra crossing\"", "zebra"),
    ("password = \"zebra\" + \"crossing\"", "crossing"),
    ("secret = base64.b64decode(\"emVicmEgMQ==\")", "emVicmEgMQ"),
    ("#define DB_PASSWORD \"zebra crossing\"", "zebra"),
    ("define('DB_PASSWORD', 'zebra crossing');", "zebra"),
    ("ALTER USER x WITH PASSWORD 'zebra crossing'", "zebra"),
    ("CREATE USER x IDENTIFIED BY 'zebra crossing'", "zebra"),
    // Addresses.
    ("postgres://u:zeb/ra@host/db", "zeb"),
    ("postgres://u:z#b?r&a$1@host/db", "b?r&a"),
    ("jdbc:oracle:thin:user/zebra@host:1521:x", "zebra"),
    ("jdbc:mysql://host/db?user=x&password=zebracrossing", "zebra"),
    ("https://host/?password=zebracrossing&x=y", "zebra"),
    ("dsn := \"root:zebra@tcp(localhost:3306)/db\"", "zebra"),
    // The shell.
    ("DB_PASSWORD=zebracrossing ./run --now", "zebra"),
    ("cd /srv && DB_PASSWORD='zebra crossing' ./run", "zebra"),
    ("mysql -u root -pzebracrossing db", "zebra"),
    ("sshpass -p zebracrossing ssh host", "zebra"),
    ("ConvertTo-SecureString \"zebra crossing\" -AsPlainText -Force", "zebra"),
    (
        "ConvertTo-SecureString -AsPlainText -Force -String 'zebra crossing'",
        "zebra",
    ),
    ("mot_de_passe = \"zebra crossing\"", "zebra"),
    ("const password\n  = \"zebra crossing\";", "zebra"),
    (
        "MNEMONIC=legal zebra thank year wave sausage worth useful legal winner thank yellow",
        "zebra",
    ),
    (
        "w = \"legal zebra thank year wave sausage worth useful legal winner thank yellow\"",
        "zebra",
    ),
    ("docker login -u me -p zebracrossing registry", "zebra"),
    ("redis-cli -h host -a zebracrossing ping", "zebra"),
    ("curl -sSu me:zebracrossing https://host", "zebra"),
    ("curl https://host \\\n  -u 'me:zebra crossing'", "crossing"),
    ("deploy --db-password 'zebra crossing'", "zebra"),
    ("deploy --password=zebracrossing", "zebra"),
    ("[\"deploy\", \"--password\", \"zebra crossing\", \"-v\"]", "zebra"),
    ("curl -H 'Authorization: ApiKey zebracrossing'", "zebra"),
    ("Authorization: Token zebracrossing", "zebra"),
    ("headers[\"Authorization\"] = \"Basic zebracrossing\"", "zebra"),
    // XML.
    ("<password><![CDATA[zebra <crossing>]]></password>", "zebra"),
    ("<db:password>zebracrossing</db:password>", "zebra"),
    ("<add value=\"zebra crossing\" key=\"ApiSecret\"/>", "zebra"),
    ("<add key=\"ApiSecret\" value=\"zebra crossing\"/>", "zebra"),
    ("<property name=\"password\">zebracrossing</property>", "zebra"),
    ("<key>ApiSecret</key>\n<string>zebracrossing</string>", "zebra"),
    ("<server user=\"x\" password=\"zebra crossing\"/>", "zebra"),
    // Defaults.
    ("config.password ||= \"zebra crossing\"", "zebra"),
    ("x = ENV.fetch(\"DB_PASSWORD\") { \"zebra crossing\" }", "zebra"),
    (
        "env::var(\"DB_PASSWORD\").unwrap_or(\"zebra crossing\".into())",
        "zebra",
    ),
    ("p = os.environ.get(\"DB_PASSWORD\") or \"zebra crossing\"", "zebra"),
    (
        "p.add_argument(\"--password\", help=\"of (db)\", default=\"zebra crossing\")",
        "zebra",
    ),
    (
        "flag.String(\"password\", \"zebra crossing\", \"the password\")",
        "zebra",
    ),
    ("@Value(\"${db.password:zebracrossing}\") String p;", "zebra"),
    (
        "#[arg(long, default_value = \"zebra crossing\")] password: String",
        "zebra",
    ),
    ("DBPassword:\n  Type: String\n  Default: zebracrossing\n", "zebra"),
    ("x: \"{{ db_password | default('zebra crossing') }}\"", "zebra"),
    // Functions and classes.
    ("String getPassword() { return \"zebra crossing\"; }", "zebra"),
    ("fn password() -> &'static str { \"zebra crossing\" }", "zebra"),
    ("def get_password():\n    return \"zebra crossing\"\n", "zebra"),
    (
        "class A {\n  password() {\n    return \"zebra crossing\";\n  }\n}",
        "zebra",
    ),
    (
        "new PasswordAuthentication(\"u\", \"zebra crossing\".toCharArray())",
        "zebra",
    ),
    ("pass_phrase: zebracrossing\n", "zebra"),
    ("class Secrets:\n    DB = \"zebra crossing\"\n", "zebra"),
    ("jwt.encode(claims, \"zebra crossing\", algorithm=\"HS256\")", "zebra"),
    ("new PDO(\"mysql:host=h\", \"root\", \"zebra crossing\");", "zebra"),
    // Other quotes and invisible characters.
    ("(password => q{zebra crossing})", "zebra"),
    ("CREATE LOGIN x WITH PASSWORD = N'zebra crossing';", "zebra"),
    ("$password = @\"\nzebra crossing\n\"@", "zebra"),
    ("$password = <<<X\nzebra crossing\nX;", "zebra"),
    ("mot de passe : « zebra crossing »", "zebra"),
    ("pass\u{ad}word = “zebra crossing”", "zebra"),
    ("p\\u0061ssword: \"zebra crossing\"", "zebra"),
    ("ｐａｓｓｗｏｒｄ = \"zebra crossing\"", "zebra"),
    ("pаsswоrd = \"zebra crossing\"", "zebra"),
    ("byte[] secretKey = {0x12, 0x34, 0x56, 0x78};", "0x34"),
    // Between a name and its value.
    ("val apiKey by lazy { \"zebra crossing\" }", "zebra"),
    ("let(:password) { \"zebra crossing\" }", "zebra"),
    ("let password: String? = .some(\"zebra crossing\")", "zebra"),
    ("const TOKEN: &str = concat!(\"zebra crossing\", \"x\");", "zebra"),
    ("const secret = Buffer.from(\"zebra crossing\")", "zebra"),
    ("strcpy(password, \"zebra crossing\");", "zebra"),
    ("memcpy(pw, \"zebra crossing\", 13);", "zebra"),
    ("PASSWORD, = [\"zebra crossing\"]", "zebra"),
    ("option (password) = \"zebra crossing\";", "zebra"),
    ("PASSWORD=$(echo zebracrossing)", "zebra"),
    ("read -r PASSWORD <<< zebracrossing", "zebra"),
    ("std::env::set_var(\"DB_PASSWORD\", \"zebra crossing\");", "zebra"),
    ("localStorage.setItem(\"token\", \"zebra crossing\")", "zebra"),
    ("@Value(\"zebra crossing\") String password;", "zebra"),
    ("printf 'zebracrossing' | docker secret create pw -", "zebra"),
    ("jwt.verify(t, \"zebra crossing\")", "zebra"),
    ("bcrypt.hash(\"zebra crossing\", 10)", "zebra"),
    // Data.
    ("[pypi]\nusername = a\npassword = zebracrossing\n", "zebra"),
    ("NPM_TOKEN: zebracrossing", "zebra"),
    ("X-Auth-Token: zebracrossing", "zebra"),
    (
        "INSERT INTO t (name, password) VALUES ('x', 'zebra crossing');",
        "zebra",
    ),
    ("kind: Secret\nstringData:\n  dbkey: zebracrossing\n", "zebra"),
    ("apiVersion: v1\ndata:\n  dbkey: zebracrossing\nkind: Secret\n", "zebra"),
    (
        "kind: Secret\ndata:\n  one: two\nstringData:\n  dbkey: zebracrossing\n",
        "zebra",
    ),
    ("kind: \"Secret\"\nstringData:\n  dbkey: zebracrossing\n", "zebra"),
    ("kind: Secret # x\ndata: {dbkey: zebracrossing}\n", "zebra"),
    (r#"{"kind": "Secret", "data": {"dbkey": "zebracrossing"}}"#, "zebra"),
    (
        "kind: Secret\ndata:\n# one\n{{- if a }}\n  dbkey: zebracrossing\n",
        "zebra",
    ),
    ("kind: Secret\ndata:\n{{- if a }}\n  dbkey: zebracrossing\n", "zebra"),
    ("kind: Secret\nstringData: &x {dbkey: zebracrossing}\n", "zebra"),
    (r#"{"kind": "Secret", "stringData": {"a": "x}zebracrossing"}}"#, "zebra"),
    ("metadata:\n  name: a\nstringData:\n  dbkey: zebracrossing\n", "zebra"),
    (
        "mnemonic: legal, zebra, thank, year, wave, sausage, worth, useful, legal, winner, thank, year",
        "zebra",
    ),
    (
        "`legal zebra thank year\nwave sausage worth useful\nlegal winner thank yellow`",
        "zebra",
    ),
    (
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2zebra\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        "zebra",
    ),
    ("<RSAKeyValue><D>zebra==</D></RSAKeyValue>", "zebra"),
    // Commands.
    ("openssl pkcs12 -passout pass:zebracrossing -in x", "zebra"),
    ("psql redis://:qz@h/0", "qz"),
    ("htpasswd -b file bob zebracrossing", "zebra"),
    ("echo \"root:zebracrossing\" | chpasswd", "zebra"),
    (
        "kubectl create secret generic x --from-literal=dbkey=zebracrossing",
        "zebra",
    ),
    // Entries of .netrc.
    ("machine h login u password zebracrossing", "zebra"),
    ("machine h\n  login u\n  account a\n  password zebracrossing\n", "zebra"),
    ("machine h password zebracrossing login u", "zebra"),
    ("default login u password zebracrossing", "zebra"),
    // Escapes and continued lines.
    ("https://a/b?password%3Dzebracrossing%26x%3D1", "zebra"),
    ("password%253Azebracrossing", "zebra"),
    ("%22password%22%3A%22zebra crossing%22", "zebra"),
    ("postgres%3A%2F%2Fapp%3Azebra%40db%2Fprod", "zebra"),
    ("socks5://me%40example:zebra@h", "zebra"),
    ("password&#61;zebracrossing", "zebra"),
    ("&quot;password&quot;: &quot;zebra crossing&quot;", "zebra"),
    ("&amp;lt;password&amp;gt;zebracrossing&lt;/password&gt;", "zebra"),
    ("\\x22password\\x22: \\x22zebra crossing\\x22", "zebra"),
    ("\"{\\\"password\\\": \\\"a\\\\\\\"zebra\\\"}\"", "zebra"),
    ("x --password \\\n    zebracrossing", "zebra"),
    ("db.password=\\\r\n    zebracrossing", "zebra"),
    ("curl \\\n  --user \\\n  me:zebracrossing https://h", "zebra"),
    ("PASSWORD=first\\\n  zebracrossing", "zebra"),
    ("[db]\npassword =\n    zebracrossing\n", "zebra"),
    ("password: # of the database\n  zebracrossing\n", "zebra"),
    ("- name: DB_PASSWORD\n  value: |\n    zebra crossing\n", "zebra"),
    // More commands and pairs of arguments.
    ("sshpass -e -p zebracrossing ssh h", "zebra"),
    ("unzip -P zebracrossing a.zip", "zebra"),
    ("headers.append(\"X-Api-Key\", \"zebra crossing\")", "zebra"),
    ("command.arg(\"--password\").arg(\"zebra crossing\")", "zebra"),
    ("mapOf(\"password\" to \"zebra crossing\")", "zebra"),
    ("https://h/x#access_token=zebracrossing&a=b", "zebra"),
    ("createHmac(\"sha256\", \"zebracrossing\")", "zebra"),
    ("expect \"Password:\"\nsend \"zebracrossing\\r\"", "zebra"),
    ("echo zebracrossing | kinit bob", "zebra"),
    ("gh secret set X --body zebracrossing", "zebra"),
    ("SET PASSWORD FOR bob = 'zebracrossing';", "zebra"),
    ("pwd.equals(\"Zq01xK7mPw\")", "Zq01"),
    ("snmpwalk -v2c -c Zq01xK7mPw host", "Zq01"),
    ("ssh-keygen -t ed25519 -N zebracrossing", "zebra"),
    ("useradd -m -p zebracrossing bob", "zebra"),
    (
        "getOrDefault(\"x\", env.getOrDefault(\"DB_PASSWORD\", \"zebracrossing\"))",
        "zebra",
    ),
    ("aws configure set aws_secret_access_key zebracrossing", "zebra"),
    ("curl -s -H 'X-Api-Key: zebracrossing' h", "zebra"),
    ("mount -t cifs -o username=bob,password=zebracrossing //h/s /m", "zebra"),
    ("bindpw zebracrossing\n", "zebra"),
    ("new NetworkCredential(\"bob\", \"zebracrossing\")", "zebra"),
    // Methods of JavaScript, several values at once, tables, cookies and passphrases.
    ("class A { getPassword() { return \"zebra crossing\" } }", "zebra"),
    ("password, user = \"zebra crossing\", \"bob\"", "zebra"),
    ("const [password, user] = [\"zebra crossing\", \"bob\"]", "zebra"),
    ("user,password,age\nbob,zebra-crossing,3\n", "zebra"),
    (
        "| user | password |\n|------|----------|\n| bob | zebra-crossing |",
        "zebra",
    ),
    ("document.cookie = \"session=zebra-crossing\"", "zebra"),
    ("pass_phrase : zebra crossing other side", "zebra"),
    // Keys and passwords among other arguments.
    ("AES.new(key=unhexlify(\"zebra crossing\"), mode=ECB)", "zebra"),
    (
        "createCipheriv('aes-128-cbc', Buffer.from('zebra', 'hex'), iv)",
        "zebra",
    ),
    ("hash_hmac('sha256', $data, 'zebra')", "zebra"),
    ("jwt.sign({ id: user.id }, \"zebra\", { expiresIn: 1 })", "zebra"),
    ("hmac.New(sha256.New, []byte(\"zebra\"))", "zebra"),
    ("login(\"admin\", \"zebra\")", "zebra"),
    ("connect(host, user, \"zebra\")", "zebra"),
    ("exec.Command(\"mysql\", \"-uroot\", \"-pzebra\")", "zebra"),
    ("Command::new(\"sshpass\").arg(\"-p\").arg(\"zebra\")", "zebra"),
    ("if user == \"bob\" and password == \"zebra\":", "zebra"),
    ("if (\"zebra\".equals(password)) {", "zebra"),
    ("expect(user.password).toBe(\"zebra\")", "zebra"),
    ("assert_eq!(config.password(), \"zebra\");", "zebra"),
    ("assertEquals(\"zebra\", user.password)", "zebra"),
    ("user.check_password(\"zebra\")", "zebra"),
    ("bcrypt.hashpw(b\"zebra\", salt)", "zebra"),
    ("page.fill('input[name=\"password\"]', 'zebra')", "zebra"),
    ("connect(SecretStr(\"zebra\"))", "zebra"),
    ("SecretString::new(\"zebra crossing\")", "zebra"),
    ("SecretBytes(value=b\"zebra\")", "zebra"),
    ("buildConfigField(\"String\", \"API_KEY\", \"\\\"zebra\\\"\")", "zebra"),
    ("buildConfigField 'String', 'MAPS_TOKEN', '\"zebra\"'", "zebra"),
    ("expect \"*assword:\" { send \"zebra\\r\" }", "zebra"),
    ("expect -re \"Password:\"\nexp_send -- \"zebra\\r\"", "zebra"),
    ("expect {\n  \"password\" { send \"zebra\\n\" }\n}", "zebra"),
    ("net use Z: \\\\server\\share zebra99 /user:bob", "zebra"),
    ("net use \\\\server\\share zebra99", "zebra"),
    ("ansible-vault encrypt_string 'zebra' --name db", "zebra"),
    (
        "ansible-vault encrypt_string --vault-id dev@file \"zebra\" --name db",
        "zebra",
    ),
    ("rclone obscure zebra99", "zebra"),
    ("rclone config create r sftp user bob pass zebra99", "zebra"),
    ("rclone config create r s3 secret_access_key=zebra99", "zebra"),
    ("login: admin / zebra-99X", "zebra"),
    ("Credentials: bob@example.com/zebra-99X", "zebra"),
    // Languages.
    ("clave_api = \"zebra crossing\"", "zebra"),
    ("geheimnis = \"zebra crossing\"", "zebra"),
    ("секрет = \"zebra crossing\"", "zebra"),
    ("密钥 = \"zebra crossing\"", "zebra"),
    ("كلمة_المرور = \"zebra crossing\"", "zebra"),
];

#[test]
fn no_way_to_write_a_secret_passes() {
    let passed: Vec<String> = WRITTEN
        .iter()
        .flat_map(|(text, secret)| {
            let lines = format!("first = 1\n{text}\nlast = 2\n");
            [(*text).to_owned(), lines].map(|text| (redacted(&text), secret))
        })
        .filter(|(left, secret)| left.contains(**secret) || !left.contains(MARK))
        .map(|(left, _)| left)
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn what_looks_random_does_not_pass_without_a_name() {
    for secret in [
        "9Hb06WjPYMdSWPbCRqBVzJPtIFMRi1yIjcd1yzPK",
        "EWMcnYBDO4Zlw9CcDnPPOCK7l2LUA530",
        "dTamQ94f8EPrYrtlOaTZ/4tfBy3PFLKWYLA4SZjX+VYpE==",
        "SUAMK2FG4MI6UE3ACF3FK3OIQBCEIEZV7NSWFFEW63UXMRLFM2XLAXK4GY",
        "k3j9x0q2m7v5t1z8w4r6y2p0s9d3f5g7h1",
    ] {
        for text in [
            format!("send('{secret}')"),
            format!("  - {secret}\n"),
            format!("a={secret}&b=c"),
        ] {
            assert!(!redacted(&text).contains(secret), "{}", redacted(&text));
        }
    }
    let hex = "cea27d26934b484e73cf575dcad6ba2b0aee0ca923732881584d8c4fa2815d28";
    assert_eq!(redacted("users: {bob: 'Tr0ub4dor&3x'}"), "users: {bob: '[secret]'}");
    for text in [
        "ALGOLIA_ADMIN_KEY=§",
        "key = \"§\"",
        "seed = \"§\"",
        "let wallet_seed = hex!(\"§\");",
        "privkey: 0x§",
    ] {
        let text = text.replace('§', hex);
        assert!(!redacted(&text).contains(hex), "{}", redacted(&text));
    }
}

/// Ways to write a random secret, marked by `§`.
const WRITTEN_AT_RANDOM: &[&str] = &[
    "local password = [[§]]",
    "set :session_secret, \"§\"",
    "os.environ.setdefault(\"SECRET_KEY\", \"§\")",
    "storePassword(\"§\")",
    "storePassword \"§\"",
    "jwtKey := []byte(\"§\")",
    "\"Jwt\": {\"Key\": \"§\"}",
    "\"Jwt\": {\n    \"Issuer\": \"me\",\n    \"Key\": \"§\"\n}",
    "AES_KEY = \"§\"",
    "hmacKey: \"§\"",
    "cookie_key: §",
    "aws configure set aws_secret_access_key §",
    "buildConfigField(\"String\", \"API_KEY\", \"\\\"§\\\"\")",
    "buildConfigField \"String\", \"API_KEY\", \"\\\"§\\\"\"",
    "resValue \"string\", \"google_api_key\", \"§\"",
    "resValue(\"string\", \"google_api_key\", \"§\")",
    "read -r SECRET <<EOF\n§\nEOF",
    "localhost:5432:db:user:§",
    "*:*:*:user:§",
    "proxy_set_header Authorization \"Basic §\";",
    "export GH_PAT=§",
    "\"password\", \"§\"",
    "if password == \"§\"",
    "if (password === \"§\") {",
    "Password: **§**",
    "**Password**: `§`",
    "client-key-data: §",
    "root:$6$salt$§abcdefghijklmnop:19000:0:99999:7:::",
    "user:$apr1$abcdefgh$§abcdefgh",
    "user:$2y$10$§abcdefghijklmnopqrstuvwxyzabcdefghijkl",
    "{\"kty\": \"RSA\", \"n\": \"abc\", \"e\": \"AQAB\", \"d\": \"§\"}",
    "{\"kty\": \"RSA\", \"p\": \"§\", \"q\": \"§\"}",
    "{\"k\": \"§\", \"kty\": \"oct\"}",
    "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n§\nPrivate-MAC: §",
    "Private-MAC: §",
    "Set-Cookie: sid=§; Path=/",
    "Cookie: session=§",
    "https://acme.webhook.office.com/webhookb2/§@1234/IncomingWebhook/§abcd/§",
    "https://hooks.slack.com/services/T00000000/B00000000/§abcdefgh",
    "https://discord.com/api/webhooks/123456789012/§abcdefghijklmnopqrstuvwxyz",
    "masterauth §",
    "requirepass §",
    "smtp_pass = §",
    "host1 ansible_host=1.2.3.4 ansible_ssh_pass=§",
    "psk=\"§\"",
    "network={\n    ssid=\"x\"\n    psk=\"§\"\n}",
    "curl -H \"X-Vault-Token: §\" https://x",
    "curl --header \"PRIVATE-TOKEN: §\" https://x",
    "keytool -genkey -storepass § -alias x",
    "gpg --batch --passphrase § -d x",
    "openssl rsa -passin pass:§ -in x",
    "kubeadm join 1.2.3.4:6443 --token § --discovery",
    "helm upgrade x --set auth.password=§ y",
    ": \"${DB_PASSWORD:=§}\"",
    ": \"${DB_PASSWORD:-§}\"",
    "Connect-X -ApiKey § -Password §",
    "\"password\": \",x §\"",
    "{\\\"Jwt\\\": 1, \\\"password\\\": \\\"§\\\"}",
    "setPassword(\"user\", \"§\")",
    "password = [=[§]=]",
    // Names in other languages.
    "пароль = \"§\"",
    "contraseña: '§'",
    "密码：§",
    "비밀번호=\"§\"",
    "user_senha: §",
    // A name and its value on two lines.
    "Password:\n\n    §",
    "| API key\n| §",
    "password\n  = \"§\"",
    "<dt>Password</dt>\n<dd>§</dd>",
    "- **Password**\n  - `§`",
    "| **Password** | `§` |",
    "| token | prod | § |",
    "<td>Password</td>\n  <td><code>§</code></td>",
    "API key\n=======\n\n§",
    "Password:\n\n```\n§\n```",
    "(password . \"§\")",
    "password==§",
    "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=§",
    "\"Authorization\": \"Basic \" + \"§\"",
    "npm config set //r/:_authToken §",
    // Arguments without names.
    "smtp.login(\"me@example.org\", \"§\")",
    "mysqli_connect(\"localhost\", \"root\", \"§\", \"db\")",
    "client.authenticate(user, '§')",
    "new NetworkCredential(\"root\", \"§\")",
    "ConvertTo-SecureString -String § -AsPlainText",
    "\"§\" | ConvertTo-SecureString -AsPlainText -Force",
    // A comment that names it.
    "env(\"X\").unwrap_or(\"§\"); // password",
    "x = \"§\"  # the database password",
    "value: '§' /* API key */",
    // Tables, prose and anchors.
    "| user | password |\n|---|---|\n| bob | § |",
    "user,password\nbob,§\n",
    "password,user\n§,bob\n",
    "class A { getToken() { return \"§\" } }",
    "document.cookie = \"a=§\"",
    "Log in as bob with the password §.",
    "? password\n: §",
    "username bob privilege 15 password 0 §",
    "snmp-server community § RO",
    "args:\n- --db-password\n- §",
    "db.password : §",
    "password — §",
    "cy.get(\"#password\").type(\"§\")",
    "az login --service-principal -u x -p § --tenant y",
    "sqlcmd -S h -U sa -P § -Q x",
];

#[test]
fn no_way_to_write_a_random_secret_passes() {
    let secret = "Zq01xK7mPw4Lt9";
    let passed: Vec<String> = WRITTEN_AT_RANDOM
        .iter()
        .map(|text| text.replace('§', secret))
        .flat_map(|text| [format!("first = 1\n{text}\nlast = 2\n"), text])
        .map(|text| redacted(&text))
        .filter(|left| left.contains(secret))
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn secrets_far_behind_another_hint_do_not_pass() {
    let far = "x ".repeat(400);
    for text in [
        format!("echo token {far} curl -u deploy:zebra7crossing https://a"),
        format!("auth token: none, {far} Authorization: Basic emVicmE6Y3Jvc3Npbmc="),
        format!("echo done {far}; mysql -uroot -pzebra7crossing app"),
    ] {
        let found = redacted(&text);
        assert!(
            !found.contains("zebra7crossing") && !found.contains("emVicmE6"),
            "{found}"
        );
    }
}

#[test]
fn similar_letters_do_not_hide_a_name() {
    for name in ["p\u{430}ssword", "\u{440}\u{430}ssword", "t\u{43e}k\u{435}n"] {
        let found = redacted(&format!("{name} = \"zebra crossing 7\""));
        assert!(!found.contains("zebra"), "{name}: {found}");
    }
}

#[test]
fn a_key_that_is_cut_into_parts_does_not_pass() {
    let line = |number: u32| format!("{number:02}IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj");
    let quoted = |number: u32| format!("    \"{}\\n\" +\n", line(number));
    let key = |of: &dyn Fn(u32) -> String| {
        let body: String = (10..60).map(of).collect();
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}Zm9vYmFyYg==\n-----END RSA PRIVATE KEY-----\nfn after() {{}}\n")
    };
    for key in [key(&|number| line(number) + "\n"), key(&quoted)] {
        for cut in (0..key.len()).step_by(7) {
            for part in [&key[..cut], &key[cut..]] {
                let left = redacted(part);
                // At most the line at the cut remains, less than a tenth of the key.
                let n_left = left.matches("IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj").count();
                assert!(n_left <= 1, "cut at {cut}: {left}");
            }
        }
        assert!(redacted(&key).ends_with("-----END RSA PRIVATE KEY-----\nfn after() {}\n"));
    }
}

#[test]
fn code_about_secrets_stays() {
    for text in [
        "fn password(&self) -> Option<&str> { self.password.as_deref() }",
        "let token = lexer.next_token();",
        "token = self.stream.current\nTOKEN = value_str",
        "if token_type == \"block_begin\":",
        "password = os.environ['DB_PASSWORD']",
        "if (secret == null) throw new Error('secret is missing');",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "api_key = \"$KEY\"",
        "https://example.com:8080/a@b",
        "the risk-of-something-very-long-with-dashes",
        "end\n-----END OF FILE-----\nconst END: &str = \"-----END PRIVATE KEY-----\";",
        "password: String,\ntoken: Option<Token>,\nsecret: Secret2,",
        "password: str = Field()\n    token: SecretStr\n",
        "token = next_token\ntoken = self.tokens.utf8\nsecret = crate::secret::new2\n",
        "token: u64\nn_tokens: usize = 12345678\n",
        "secretName: my-app-secret\ntokenSecret: default/tokens\n",
        "export TOKEN\nset tokens of the parser\nENV PATH=/usr/local/bin1:$PATH\n",
        "<token>identifier</token> <password></password>",
        "curl -u $USER:$PASSWORD https://example.com",
        "docker run --token-file tokens.txt --password-stdin",
        "sk-learn and key-value and SG.module.name",
        "let at = 12345678:9; AC and SK",
        "AVeryLongNameOfAClassThatSomebodyHasWrittenInJava\nAnotherVeryLongNameOfAClassThatSomebodyHasWritten",
        "token = parser.next_token()",
        "key = value",
        "if (password == NULL) return;",
        "password: &'a str, other: &'a str",
        "password: impl Into<String>, token: Option<&'static str>",
        "password?: string;\nsecret: Buffer | null;",
        "password = getpass.getpass(\"Enter the password: \")",
        "print(\"password: \", password, \"and\", user)",
        "log(\"the token: \" + token + \" is old\")",
        "const token = await client.getToken(\"scope\");",
        "String password = System.getenv(\"DB_PASSWORD\");",
        "String password = config.get(\"db.password\");",
        "self.token = token\nself.password = user.password\n",
        "password=password, token=self.token, secret=args.secret)",
        "ALTER USER x SET password = $1",
        "password: ${DB_PASSWORD}\nsecret: {{ .Values.secret }}\n",
        "postgres://$USER:${PASSWORD}@host, http://{user}:{password}@host",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password\n- name: PORT\n  value: \"8080\"",
        "<input type=\"password\" name=\"password\">",
        "fields = [\"id\", \"password\", \"email\"]",
        "match token { Token::Word => \"word\", Token::End => \"end\" }",
        "TOKEN_RE = re.compile(r\"[a-z]+\")",
        "def authenticate(user, password=None, *, token=None):",
        "Args:\n    password: The password of the user.\n    token: The token to parse.\n",
        "mysql -u root -p db\nssh -p 2222 host\nmkdir -p some/path",
        "compass and bypass, passed = 12, passing: bool, author = name",
        "auth = require('auth');\nimport auth from './auth';",
        "if (token.type !== 'word' || token.kind != \"comma\") return",
        "#[allow(clippy::needless_pass_by_value)]\nneedless_pass_by_value = \"allow\"",
        "Parse each token:\n\n```\nlet x = 1;\n```\n",
        "Pass 'abcd' or \"efgh\" to it.",
        "the user's password isn't in the file's 'other' part",
        "argument ``local_auth=True``. See :doc:`/appcontext` for more detail.",
        "Never pass :data:`current_app` as sender to a signal.",
        "if password == \"\" || token == \"x86_64\": return",
        "primary_key: true\nforeign_key = \"user_id\"\ncache_key = \"user:list\"\n",
        "- password\n- username\n\n| token | word |\n|---|---|\n| password | utf8_to_utf16 |\n",
        "a machine learns; login and password of the user\nmachine: x\nlogin: y",
        "token: >\n  The token of the lexer, as a text of\n  several words.\n",
        "https://registry.yarnpkg.com/@octokit/auth-token/-/auth-token-6.0.0.tgz#b02e9c08a2d8937df09a2a981f226ad219174c53",
        "curl -u me https://example.com",
        "sshpass -e ssh -p 2222 host",
        "ssh://git@example.com:2222/me/it@main",
        "100%20 of a&b; &copy; %d%s \\xzz \\\n",
        "[\"password\", \"email\"], fields = [\"user\", \"password\", \"created_at\"]",
        "validates :password, presence: true\ncompat = \"x11\"\nPATH=/usr/bin:/bin\n",
        "file.c:1234:main:error:expected",
        "{\"d\": \"hello world\", \"p\": \"paragraphs\"}",
        "Cookie: the header that browsers send",
        "tokens = [[first], [second]]",
        "commit 1f5db41f04a7ef36ac6b0c81d99c6ba2b0aee0ca, UUID=3ecd4b07-f49a-410c-b7fc-6d1e7bb98ab9",
        "\"integrity\": \"sha512-JgraAxzpO2Q6wiC3blM4eiQeA9WmkALaZI8yGRH4qM7zz1kQd0W==\"",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIzlnSq5ESxLgW0avvPk3j7zLV59hcAPkxrMNdnZMKP2",
        "uses: actions/create-github-app-token@df432ceedc7162793a195dd1713ff69aefc7379e # v2 of the app-token action",
        "test('when an option with implies is used many times then the implied value wins', () => {",
        "login(\"user\", \"password\"); // logs in without a token or a password if the session is known",
        "assertThatParserOfVersion2AcceptsDocumentsOfVersion1AndOfVersion0",
        "--test-randomize-ordering-seed=random\nseed = 42\nuse_seed(\"total\")",
        "Password\n========\n\nThe password of the user.\n",
        "pin = 12; pinned = \"v1\"; parole = \"speech of a language\"",
        "os.path.join(token_folder, \"token.yml\")",
        "connect(\"www.example.com:1234\")",
        "\"token\": {\n  \"type\": 1\n},\n\"port\": {\n  \"default\": \"abc1def2\"\n}",
        "Set `token=` and then `x` to\nanother value of `y`.",
        "if (validPassword(p)) { return \"yes please\"; }",
        "def f(password, user=\"x y z\"):",
        "passphrase: the passphrase of the key",
        "ids = [\n  \"password\",\n  \"not-a-secret\",\n]",
        "| password | user |\n| in-a-row | of two |\n",
        "digest = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
        "\"Jwt\": {\"Issuer\": \"https://example.com\"}",
        "SecretStr, SecretStr(value), Secret(name)\nexpect(pass).toBe(true); send(\"message\")",
        "net use and rclone config file\nansible-vault encrypt_string\nlogin: the page / the form",
    ] {
        assert_eq!(redacted(text), text);
    }
}
