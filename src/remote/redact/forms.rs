//! Finds secrets that have a known form: tokens of services, private keys, passwords in URLs and commands.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::value::{Trust, is_meant, last_bytes, line_end};
use crate::model::start_of;

/// Tokens: the start, the characters of the rest, and their number. Each begins at the edge of a word.
const TOKENS: &str = r#"
# Clouds and infrastructure.
A(?:KIA|SIA|GPA|IDA|ROA|BIA|CCA)  A-Z0-9  16
LTAI|AKID|STS\.  A-Za-z0-9  16,
AIza  \w-  35
ya29\.|GOCSPX-|sb_secret_|figd_|SG\.\w{16,}\.|HRKU-|CFPAT-|nfp_|tfp_  \w-  20,
do[opr]_v1_|sntryu_  a-f0-9  64
dapi|sbp_|pul-|bkua_|sq[pua]_|shippo_(?:live|test)_  a-f0-9  32,
sgp_(?:[a-f0-9]{16}_|local_)?  a-f0-9  40
hv[sbr]\.|ops_  \w-  24,
pscale_[a-z]+_  \w.=-  30,
tskey-[a-z]+-|tk-us-  A-Za-z0-9-  16,
dt0c01\.[A-Z0-9]{24}\.  A-Z0-9  64
v1\.0-[a-f0-9]{24}-  a-f0-9  100,
f(?:o1|m1[ar]|m2)_|sntrys_|glc_|whsec_  \w+/=-  20,
dp\.(?:pt|st|ct|sa|scim|audit)\.  \w.-  20,
vc[apickr]_|aio_|ico-|pnu_|lin_api_|fio-u-|EZ[AT]K  A-Za-z0-9  24,
rzp_(?:live|test)_  A-Za-z0-9  14,
duffel_(?:live|test)_  \w-  40,
secret_  A-Za-z0-9  43,
(?:sdk|mob|api|access-(?:production|sandbox|development))-[a-f0-9]{8}-  a-f0-9-  27
API-  A-Z0-9  25,40
(?:CLOJARS|rdme)_  a-z0-9  40,
AKCp  A-Za-z0-9  60,
napi_  a-z0-9  64
xaat-|amzn\.mws\.  a-f0-9-  36
st\.[a-f0-9]{24}\.[a-f0-9]{24}\.  a-f0-9  32
# Code hosting and registries.
gh[pousr]_  A-Za-z0-9  30,
github_pat_  \w  40,
gl(?:pat|ptt|rt|dt|soat|ft|imt|cbt|agent)-  \w-  20,
ATATT3|ATBB  \w=-  28,
npm_|cio|hf_|r8_|ntn_  A-Za-z0-9  30,
fw_  A-Za-z0-9  24,
pypi-  \w-  32,
rubygems_  a-f0-9  48
dckr_(?:pat|oat)_  \w-  20,
oy2  a-z0-9  43
CCIPAT_[A-Za-z0-9]+_  a-f0-9  40
# Chat, mail, payment, models and monitoring.
xox[abeoprs](?:\.xox[bp])?-|xapp-[0-9]-[A-Z0-9]+-[0-9]+-  A-Za-z0-9-  10,
SK|AC|key-|FLWSECK(?:_TEST)?-  0-9a-f  32
xkeysib-[a-f0-9]{64}-  A-Za-z0-9  16
sk-  \w-  20,
[srp]k_(?:live|test)_|gsk_|xai-|pplx-  A-Za-z0-9  16,
sq0(?:atp|csp)-  \w-  22,
shp(?:at|ca|pa|ss)_  A-Fa-f0-9  32
glsa_[A-Za-z0-9]{32}_  a-f0-9  8
lsv2_[ps][tk]_[a-f0-9]{32}_  a-f0-9  10
lin_oauth_  a-f0-9  64
e2b_  a-f0-9  40
sk_  a-f0-9  48
fc-|live_  a-f0-9  32
re_[A-Za-z0-9]{8}_  A-Za-z0-9  24
hcaik_01  a-z0-9  58
NRAK-  A-Z0-9  27
PMAK-[a-f0-9]{24}-  a-f0-9  34
pat[A-Za-z0-9]{14}\.|pat-[a-z]{2}[0-9]-  a-f0-9-  36,
WPL_AP[0-9]\.[A-Za-z0-9]{16}\.  A-Za-z0-9=  8,
access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$  a-f0-9  32
# Keys of any service.
AGE-SECRET-KEY-1  A-Z0-9  50,
eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.  \w-  8,
"#;

/// An argument of a command, between any others (`ARGS`).
const ARGUMENT: &str = r#"\\?(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'\\-][^\s"']{3,}))"#;
const ARGUMENTS: &str = r"[^\n]*?\s";
/// An argument of a call before the secret, and the calls that convert the secret.
const VALUE: &str = r#"(?:[^()\[\]{}"',\n]|"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)|\[[^\[\]\n]*\]|\{[^{}\n]*\})+,\s*"#;
const CONVERTED: &str = r"(?:\w+\s*=\s*)?(?:new\s+)?&?(?:(?:[\w.:]|\[\]){1,40}\(\s*){0,2}[bB]?";
/// What may be between a name and its value: signs, tags, ends of lines, and a cell of a table.
const BETWEEN: &str = r"(?:[^\w</.-]|<[^<>\n]{1,80}>)(?:[^\w</]|<[^<>\n]{1,80}>){0,24}(?:[\w ]{1,40}\|[^\w|\n]{0,8})?";

/// Forms of secrets in all text. The capture group that matches is the secret. `\b` is compiled as ASCII, for which the
/// regex crate has a faster engine.
const FORMS: &str = r##"
# A private key, which may be truncated at the end of the text.
all  -----(?i:BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?)-----([\s\S]*?)(?:-----(?i:END (?:[A-Z0-9]+ )*PRIVATE KEY)|\z)
all  ---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----([\s\S]*?)(?:---- END|\z)
all  \bPrivate-Lines: *[0-9]+\s+([\s\S]*?)(?:Private-MAC|\z)
all  \bPrivate-MAC: *(\S+)
all  <RSAKeyValue>([\s\S]*?)(?:</RSAKeyValue>|\z)
all  \$ANSIBLE_VAULT;\S*\s+([0-9a-f\s]{16,})
# Webhooks and signed URLs.
all  (?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+|office\.com/webhook(?:b2)?|hooks\.zapier\.com/hooks/catch/[0-9]+)/([A-Za-z0-9/_@-]{6,})
all  (?:SharedAccessSignature=|[?&]sig=)([^;\s"'<>&]{16,})
# Hashes of passwords.
all  (\$(?:[1567y]|2[abxy]?|gy|apr1|argon2(?:id|i|d)|pbkdf2[a-z0-9-]*|scrypt)\$(?:[A-Za-z0-9./=,+-]*\$){0,3}[A-Za-z0-9./=+-]{20,})
random  (?m)^[a-z_][\w-]*:([A-Za-z0-9./]{13}):[0-9]+:
# Passwords in URLs (but not port numbers), and in connection strings of Oracle and Go.
all  (?:https?://|wss?://|://[^\s:/@]*@)[^\s:/@]*:[0-9]{1,5}[/?#]|://[^\s:/@]*(?:@[^\s:/@]*)?:([^\s"`]{2,})@
key  ://([0-9A-Za-z_-]{20,})(?::[\w-]*)?@
all  jdbc:oracle:[a-z]+:[^\s/"']+/([^\s"']{3,})@
all  \b[A-Za-z0-9_.-]+:([^\s"'`]{3,})@(?:tcp|unix)\(
# Tokens that begin with any characters.
all  \b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,})
all  \b([A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34})
all  \b([MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})
all  \b([0-9]{8,10}:[A-Za-z0-9_-]{35}\b|[0-9](?:/[0-9]{16}){1,2}:[a-f0-9]{32})
all  \b([0-9a-f]{32}-(?:us[0-9]{1,2}|[0-9a-f]{8}-[0-9a-f]{8}))\b
# A line of `.pgpass`.
random  (?m)^[\w.*/-]+:(?:[0-9]{4,5}|\*):[^:\s]+:[^:\s]+:([^:\s]{4,})\r?$
# Entries of `.netrc`, on one or more lines.
all  (?m)(?:\bmachine\s+\S+|^default)(?:\s+(?:login|user|account)\s+\S+)*\s+password\s+(\S{4,})
# Twelve or more words from which a wallet is made.
all  ["'`]((?:[a-z]{3,8}\s){11}(?:(?:[a-z]{3,8}\s){3}){0,4}[a-z]{3,8})["'`]
all  \[\s*((?:["'][a-z]{3,8}["'],\s*){11}(?:(?:["'][a-z]{3,8}["'],\s*){3}){0,4}["'][a-z]{3,8}["']),?\s*\]
# The bytes of a key, in a file of their own.
all  \A\s*\[((?:[0-9]{1,3},\s*){31,}[0-9]{1,3})\]\s*\z
# The number of a card.
all  ["'](4[0-9]{3}(?:[ -][0-9]{4}){3})["']
"##;

/// Forms in the lines around a word that [`HINTS`] matches. Searching all text for them takes several times as long.
const NEAR_FORMS: &str = r##"
# The comment behind a literal names it.
random  (?im)["'`]([^\s"'`]{6,})["'`][^"'`\n]{0,40}?(?:[^:]//|#|/\*|--|;)\s*(?:\w+\s+){0,4}(?:password|passwd|passphrase|secret|api[ _-]?key|token|credentials?)\s*(?:[,.;)]|\*/|$)
# A name and its value on two lines, also in a table.
random  (?im)^[^\w\n]{0,8}[\w ._-]{0,40}(?:password|passwd|passphrase|secret|api[ _-]?key|token)[^\w\n]{0,4}\r?\n(?:[ \t]*\r?\n)?[^\w\n]{0,8}?([^\s<>]{8,})[ \t]*\r?$
random  (?i)(?:password|passwd|secret|api[ _-]?key|token)\s*:?\s*</\w+>\s*<\w+[^<>]*>\s*([^\s<>]{6,})\s*<
# A name and its value, whatever is between them.
mixed  (?i)(?:password|passwd|passphrase|secret|api[ _-]?key|token)BETWEEN([^\s"'`<>|\\]{8,})
# The words of a passphrase.
all  (?im)\bpass[_-]?phrase["']?[ \t]*[:=]+[ \t]*["']?((?-i:[a-z]{3,8}[ -]){2,9}(?-i:[a-z]{3,8}))["']?[ \t]*\r?$
# The words of a wallet behind a name.
all  (?i)\b\w*(?:mnemonic|(?:seed|recovery|backup)[_ -]?(?:phrase|words?))["'`\]]*\s*(?:is)?\s*(?:[:=]+|=>)\s*["'`]?((?:[a-zぁ-ん]{3,8},?\s+){3,23}[a-zぁ-ん]{3,8})
# A value before its name.
all  (?i)\b(?:value|default(?:_?value)?)\\?["'`]?\s*(?:[:=]|=>)\s*\\?(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'<>{}]{4,}))(?:[,;]?\s*\\?["']?(?:key|name)\\?["']?\s*(?:[:=]|=>)\s*\\?["']?|\)\]\s*(?:pub\s+)?)[\w.-]*(?:password|passwd|pwd|secret|token|api_?key)
all  (?i)connection_?string\w*["']?\]?\s*[:=]\s*["']([^"'\n]*(?:acc|key|secret|pw|pass)[^"'\n]*=[^"'\n]+)["']
# Calls that log in or make a key.
random  (?i)(?:log_?in|log_?on|sign_?in|authenticate|connect\w*|credentials?|auth|TOTP|Wallet)\s*\(\s*(?:(?:[^()"'\n]{1,60}|[^()"'\n]{0,20}["'][^"'\n]*["']\s*),\s*){0,6}["']([^\s"':]{6,})["']
key  (?i)(?:connect\w*|auth|search|wallet|from_?hex(?:string)?)\s*\(\s*(?:[^()"'\n]{0,20}["'][^"'\n]*["']\s*,\s*){0,2}["']([^\s"']{11,})["']
all  (?i)(?:getConnection|\bPDO|\bmysqli|\.connect|DBI->connect|BasicAuth\w*|WiFi\.begin|add_password|create_user|smtp\w*\.login|\bs\.login)\((?:[^()"'\n]{0,40}(?:["'][^"'\n]*["'])?,\s*){1,3}[bB]?["']([^"'/\n]{6,})["']
# Keys and hashed passwords: the first argument, the second, or the third.
all  (?:(?:Secret|PBE)KeySpec|Fernet|\bcrypt|AES\.new|hmac\.new|\.NewCipher|(?:Aes|Hmac|ChaCha)[\w:<>]{0,40}new_from_slice|\.SignedString|\bHMAC(?:256|384|512)|EncodingKey::from_secret|DecodingKey::from_secret|\bbcrypt\.(?:hash|compare)\w*|\bpassword_(?:hash|verify))\(\s*CONVERTED["']([^"'\n]{4,})["']
all  (?:create(?:Cipher|Decipher)iv|createHmac|hmac\.New|HMAC\.(?:hex)?digest|CryptoJS\.(?:\w+\.(?:en|de)crypt|Hmac\w+)|\bjwt\.(?:encode|decode|sign|verify)|\bsignWith|JWT\.(?:en|de)code)\(\s*VALUECONVERTED["']([^"'\n]{4,})["']
all  \b(?:hash_hmac|openssl_(?:en|de)crypt)\(\s*VALUEVALUE["']([^"'\n]{4,})["']
# A password behind the name of a user.
any  (?i)(?:\b(?:log_?in|log_?on|sign_?in|authenticate)|\.auth)\s*\(\s*["'][^"'\n]{1,60}["']\s*,\s*["']([^"'/\n]{4,60})["']\s*\)
any  (?i)connect(?:ion)?\(\s*VALUEVALUE["']([^"'/\s]{4,})["']\s*[,)]
# A value that is compared with a name, is expected of it or typed into it.
any  (?i)["']([^"'\n]{4,})["']\s*(?:[!=]==?|\.equals\()\s*[\w.$>-]*(?:password|passwd|passphrase|pwd)\b
any  (?i)\b(?:assert\w*|expect\w*|\w*equals?)\(\s*["']([^"'\n]{4,})["']\s*,\s*[\w.$>-]*(?:password|passwd|passphrase|pwd)\b
any  (?i)\b(?:fill|fill_in|type|send_?keys|set_?value|enter)\(\s*["'][^\n]{0,60}?(?:password|passwd|pwd|\bpw)[^\n,]{0,12}["']\s*,\s*(?:with:\s*)?["']([^"'\n]{4,})["']
any  (?i)\b(?:set|check|verify|hash|change|reset|update|validate|compare|generate)_?password(?:_?hash)?\(\s*[bB]?["']([^"'\n]{4,})["']
any  (?i)\b(?:set|check|verify|compare|validate)_?password(?:_?hash)?\(\s*VALUE[bB]?["']([^"'\n]{4,})["']
all  \b(?:btoa|b64encode|base64_encode|encodeBase64)\(\s*b?["'][\w.-]+:([^"'\n$]{4,})["']
all  (?i)\bConvertTo-SecureString(?:[ \t]+-(?:AsPlainText|Force|String|Key[ \t]+\S+))*[ \t]+(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'$(-][^\s"']{3,}))
all  (?i)["']([^"'\n]{4,})["']\s*\|\s*ConvertTo-SecureString\b
all  (?i)\b(?:echo|printf)\s+(?:-\w+\s+)?["']?([^\s"'|$]{4,})["']?\s*\|\s*(?:docker|podman)\s+secret\s+create\b
all  @(?:Value|Config\w*|DefaultValue)\(\s*(?:\w+\s*=\s*)?"([^"\n$]{4,})"\s*\)\s*(?:[\w<>.]+\s+){1,4}(?i)\w*(?:password|passwd|pwd|secret|token|api_?key)
# The key in a section of a settings file.
all  (?i)["'](?:jwt|hmac|aes|encryption|signing)\w*["']\s*:\s*\{[^{}]{0,300}?["']\w*key["']\s*:\s*["']([^"'\n]{4,})["']
random  (?i)\bdocument\.cookie\s*\+?=\s*["'`](?:[^\n"'`]{0,200};\s*)?[\w.-]+=([^\s;"'`$<{\\]{6,})
notname  (?i)cookie["']?\s*[:,=]\s*\\?["'`]?(?:[^\n"']{0,200};\s*)?[\w.-]*(?:sid|sess|auth|token|id|csrf|remember)[\w.-]*=([^\s;"'`$<{\\]{8,})
all  (?i)\bauthorization["']?\s*\]?(?:\s*[:=,]\s*\\?["']?|\s+\\?["'])(?:basic|bearer|token|api-?key|key|digest|negotiate|oauth|jwt|ssws)\s+(?:["']\s*[+.]\s*["'])?([^\s"'`$<{\\]{4,})
random  (?i)\bauthorization\b[^\n]{0,200}\b(?:signature|response)=["']?([^\s"',]{8,})
random  (?i)\bbearer\s+([^\s"'`$<{\\=]{12,})
all  (?i)\bidentified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+)?(?:["']([^"'\n]+)["']|([a-z0-9]{6,})\s*;)
all  (?i)\bset\s+password\s+(?:for\s+\S+\s*)?=\s*["']([^"'\n]{4,})["']
all  (?i)\busername=[^,\s]+,password=([^,\s"']{4,})
all  (?i)\.(?:getOrDefault|getProperty)\(\s*["'][\w.-]*(?:password|passwd|secret|api_?key|token)["']\s*,\s*["']([^"'\n]{4,})["']
all  \b(?:NetworkCredential|PasswordAuthentication)\(\s*"[^"\n]*",\s*"([^"\n]{4,})"
all  (?i)\bexpect\s+(?:-\w+\s+)?["{*]?[^;]{0,40}?(?:pass|assw)[^\n]{0,40}?\s(?:\{\s*)?(?:exp_)?send\s+(?:--\s+)?["']([^"'\n$]{4,}?)\\[rn]["']
any  (?i)\bSecret(?:Str|Bytes|String|Text|Value)?(?:::new|\.of|\.from\w*)?\(\s*(?:\w+\s*=\s*)?[bB]?["']([^"'\n]{4,})["']
all  (?i)\bbuildConfigField\b[^\n]{0,40}["'][\w.-]*(?:password|passwd|secret|api_?key|token)\w*["']\s*,\s*["'](?:\\?["'])?([^"'\\\n$]{4,})
random  (?im)\b(?:log_?in|log_?on|credentials?)\s*[:=]\s*["']?[\w.@-]{2,40}["']?\s*/\s*["']?(\S{4,}?)["']?[ \t]*\r?$
all  (?im)^\s*bindpw\s+(\S{4,})\s*$
any  (?i)\b\w*(?:password|passwd|pwd|secret)\w*\.equals\(\s*["']([^"'\n]{4,})["']
all  (?i)\b(?:PWD|password)=\{([^{}"'\n]{4,})\}
all  (?im)^\s*(?:user(?:name)?|login)\s+\S+\s+(?:privilege\s+[0-9]+\s+)?(?:insecure-)?(?:password|secret)\s+(?:[0-9]\s+)?(\S{4,})\s*$
all  \b(?:enable\s+(?:secret|password)\s+[0-9]|snmp-server\s+community)\s+(\S{4,})
all  (?i)\bInput (?:Text|Password)\s{2,}\S*(?:pass|pw)\S*\s{2,}(\S+)
"##;

/// Forms of commands with a password as an argument.
const COMMANDS: &str = r##"
all  \bcurl\bARGS(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)[\s=]*(?:"([^":\n]*:[^"\n]*)"|'([^':\n]*:[^'\n]*)'|([^\s"':\\-][^\s"':]*:[^\s"']*))
all  \bhttps?\bARGS-a[\s=]+ARGUMENT
all  \b(?:mysql|mariadb)[a-z-]*\bARGS-pARGUMENT
all  \bmysqladmin\bARGSpassword\s+ARGUMENT
all  \b(?:mongo[a-z]*|twine|psexec)\bARGS-p\s+ARGUMENT
all  \b(?:sshpass(?:\s+-[a-z])*|7z\s+[a-z])\s+-p\s*ARGUMENT
all  \b(?:(?:un)?zip|sqlcmd|bcp|mosquitto_[a-z]+)\bARGS-P\s*ARGUMENT
all  \b(?:ldap[a-z]+)\bARGS-w\s+ARGUMENT
all  \bopenssl\bARGS(?:-[kK]\s+|-pass(?:in|out)?\s+pass:)ARGUMENT
all  \bxfreerdp\bARGS/p:ARGUMENT
all  \b(?:lftp|smbclient|etcdctl)\bARGS(?:-[uU]|--user)\s+\w+[,%:]([^\s]{4,})
all  \bsqlplus\s+\w+/([^\s@/]{4,})@
all  \bnet\s+use\s+(?:[\w*]:?\s+)?\\\\\S+\s+([^\s/<*-]\S{3,})
all  \brclone\s+obscure\s+ARGUMENT
all  \brclone\s+config\b[^\n]*\s(?:pass|password|\w*secret\w*|key|token)[\s=]ARGUMENT
all  \bansible-vault\s+encrypt_string\b(?:\s+--[\w-]+(?:[\s=]+[\w@./-]+)?)*?\s+(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'\\-][^\s"']{3,}))(?:\s+--|\s*$)
all  \bnet\s+(?:use\b[^\n]*\s/user:\S+|user\s+[a-z]\w*)\s+([^\s/<*-]\S{5,})
all  \b(?:htpasswd\s+-\w*b\w*\s+\S+|rabbitmqctl\s+(?:add_user|change_password)|mc\s+alias\s+set\s+\S+\s+\S+)\s+\S+\s+ARGUMENT
all  \b(?:vault\s+kv\s+put|kubectl\s+create\s+secret)\bARGS(?:--from-literal=)?\w+=ARGUMENT
all  \bput-parameter\bARGSSecureStringARGS--value\s+ARGUMENT
all  \b(?:docker|podman|helm|oras|skopeo|buildah|oc|az)\b[^\n]*\blogin\bARGS(?:-p|--password)[\s=]*ARGUMENT
all  \bgh\s+secret\s+set\bARGS(?:-b|--body)[\s=]*ARGUMENT
random  \bsnmp[a-z]+\bARGS-c\s+ARGUMENT
all  \bssh-keygen\bARGS-N\s+ARGUMENT
all  \buser(?:add|mod)\bARGS-p\s+ARGUMENT
all  \baws\s+configure\s+set\s+aws_secret_access_key\s+ARGUMENT
all  \bcurl\bARGS(?:-H|--header)[\s=]*["'](?i:x-api-key):\s*([^"'\n$]{4,})["']
all  \bredis-cli\bARGS-a\s+ARGUMENT
all  \becho\s+(?:-n\s+)?["']?(?:[a-z]\w*:)?([^\s"'$:|]{6,})["']?\s*\|\s*(?:sudo -S|passwd --stdin|chpasswd|kinit\b|(?:docker|gh|podman|helm)\b[^\n]*\blogin\b)
"##;

/// Texts, one of which every form in [`NEAR_FORMS`] contains.
const HINTS: &str = r"(?i-u)(?:password|passwd|pass[_-]?phrase|pwd|secret|api[ _-]?key|token|credential|securestring|expect\s+|log_?in\s*[:=]|log_?on\s*[:=]|authorization|bearer|cookie|identified|connection_?string|mnemonic|seed[ _-]?phrase|input (?:text|pass)|bindpw|[\x22'](?:jwt|hmac|aes|encryption|signing)[a-z]*[\x22']|btoa\(|base64_encode\(|b64encode\(|encodeBase64\(|keyspec\(|fernet\(|cipher(?:iv)?\(|hmac|cryptojs|new_from_slice\(|signedstring\(|signwith\(|openssl_|jwt\.[a-z]+\(|(?:aes\.new|crypt(?:\.[a-z]+)?|PDO|mysqli|totp|wallet|from_?hex(?:string)?|wifi\.begin|create_user|log_?in|log_?on|sign_?in|authenticate|connect[a-z_]*|getconnection|auth[a-z]*|search)[ \t]*\(|enable secret|snmp-server)";
/// The names of the commands.
const COMMAND_HINTS: &str = r"(?-u:\b)(?:curl|https?|mysql[a-z]*|mariadb[a-z-]*|mongo[a-z]*|twine|psexec|sshpass|7z|(?:un)?zip|sqlcmd|bcp|mosquitto_[a-z]+|ldap[a-z]+|openssl|xfreerdp|lftp|smbclient|etcdctl|sqlplus|net|rclone|ansible-vault|htpasswd|rabbitmqctl|mc|vault|kubectl|put-parameter|docker|podman|helm|oras|skopeo|buildah|oc|az|redis-cli|echo|gh|snmp[a-z]+|ssh-keygen|user(?:add|mod)|aws)[ \t]";
/// Limit on the text before and behind such a word.
const NEAR_BYTES: usize = 300;
/// A JSON Web Key.
const JSON_WEB_KEY: &str = r#"\{[^{}]*["']kty["'][^{}]*"#;
/// A private member of a JSON Web Key.
const PRIVATE_MEMBER: &str = r#"["'](?:d|p|q|dp|dq|qi|k)["']\s*:\s*["']([A-Za-z0-9_=-]{8,})["']"#;

/// Forms that are compiled on first use, because most calls send no text.
struct Forms(Vec<(Trust, Regex)>);

impl Forms {
    fn of(table: &'static str) -> Self {
        let arguments = |form: &str| {
            form.replace("ARGUMENT", ARGUMENT)
                .replace("ARGS", ARGUMENTS)
                .replace("BETWEEN", BETWEEN)
                .replace("VALUE", VALUE)
                .replace("CONVERTED", CONVERTED)
        };
        let row = |[trust, form]: [&str; 2]| (Trust::of(trust), arguments(form).replace(r"\b", r"(?-u:\b)"));
        let forms = rows(table).map(row).map(|(trust, form)| (trust, compiled(&form)));
        Self(forms.collect())
    }

    /// Returns the values that look enough like secrets. O(n) for n bytes.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let is_secret = |value: &str, trust: Trust| !is_prose(value) && !value.is_empty() && is_meant(value, trust);
        let mut found = Vec::new();
        for (trust, form) in &self.0 {
            let values = form
                .captures_iter(text)
                .filter_map(|captures| captures.iter().skip(1).flatten().next());
            found.extend(
                values
                    .filter(|value| is_secret(value.as_str(), *trust))
                    .map(|value| value.range()),
            );
        }
        found
    }
}

/// Returns the rows of a table, without its comments. Two spaces separate columns.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| {
        let columns: Vec<&str> = line.splitn(N, "  ").collect();
        columns.try_into().expect("each row has all columns")
    })
}

pub(super) fn compiled(form: &str) -> Regex {
    Regex::new(form).expect("the forms are tested")
}

static TOKENS_FORM: LazyLock<Regex> = LazyLock::new(|| {
    let form_of = |[start, part, n]: [&str; 3]| format!("(?:{start})[{part}]{{{n}}}");
    let forms: Vec<String> = rows(TOKENS).map(form_of).collect();
    compiled(&format!(r"(?-u:\b(?:{}))", forms.join("|")))
});
static ALL_FORMS: LazyLock<Forms> = LazyLock::new(|| Forms::of(FORMS));
static FORMS_NEAR: LazyLock<Forms> = LazyLock::new(|| Forms::of(NEAR_FORMS));
static FORMS_OF_COMMANDS: LazyLock<Forms> = LazyLock::new(|| Forms::of(COMMANDS));

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<_> = TOKENS_FORM.find_iter(text).map(|token| token.range()).collect();
    found.extend(ALL_FORMS.find(text));
    for key in form!(JSON_WEB_KEY).find_iter(text) {
        let members = form!(PRIVATE_MEMBER).captures_iter(key.as_str());
        let members = members.filter_map(|member| member.get(1));
        found.extend(members.map(|member| key.start() + member.start()..key.start() + member.end()));
    }
    found.extend(find_near(text, form!(HINTS), &FORMS_NEAR));
    found.extend(find_near(text, form!(COMMAND_HINTS), &FORMS_OF_COMMANDS));
    if let Some(line) = as_command_line(text) {
        found.extend(find_near(&line, form!(COMMAND_HINTS), &FORMS_OF_COMMANDS));
    }
    found
}

/// Returns the text with spaces in place of what separates string literals in a list of arguments; `None` if it has no
/// such list.
fn as_command_line(text: &str) -> Option<String> {
    let between = form!(r#"["']\)?\s*(?:,\s*&?\[?|\.args?\(\s*&?\[?)\s*["']"#);
    let (mut line, mut end) = (String::new(), 0);
    for found in between.find_iter(text) {
        line.push_str(&text[end..found.start()]);
        line.extend(std::iter::repeat_n(' ', found.len()));
        end = found.end();
    }
    line.push_str(&text[end..]);
    (end > 0).then_some(line)
}

/// Finds `forms` in the lines around each match of `hints`.
fn find_near(text: &str, hints: &Regex, forms: &Forms) -> Vec<Range<usize>> {
    let (mut found, mut end) = (Vec::new(), 0);
    for hint in hints.find_iter(text) {
        if hint.start() >= end {
            let window = lines_around(text, hint.range());
            end = line_end(text, hint.end()).min(window.end);
            let near = forms.find(&text[window.clone()]).into_iter();
            found.extend(near.map(|secret| window.start + secret.start..window.start + secret.end));
        }
    }
    found
}

/// Returns true for many words with some that are not used for wallets, or in order.
fn is_prose(text: &str) -> bool {
    const COMMON: [&str; 20] = [
        "and", "are", "for", "from", "has", "into", "not", "the", "was", "which", "with", "without", "const", "else",
        "false", "null", "return", "static", "true", "while",
    ];
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.len() > 11 && (words.iter().any(|word| COMMON.contains(word)) || words.is_sorted())
}

/// Returns the line of a word with the three lines behind it, as far as they are not too long.
fn lines_around(text: &str, word: Range<usize>) -> Range<usize> {
    let before = last_bytes(&text[..word.start], NEAR_BYTES);
    let start = word.start - before.len() + before.rfind('\n').map_or(0, |newline| newline + 1);
    let behind = start_of(&text[word.end..], NEAR_BYTES);
    let n_bytes: usize = behind.split_inclusive('\n').take(4).map(str::len).sum();
    start..word.end + n_bytes
}
