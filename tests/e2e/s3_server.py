"""A small server of S3 on 127.0.0.1 that speaks the protocol: signatures (checked as AWS's documentation has them), conditions, ranges,
lists in pages, uploads in parts. It errs when it is told to. Beside it those who give credentials: IMDSv2, an agent of containers, STS.

usage: s3_server.py       serves, and prints its address first; POST /_faults sets its attributes
"""
import base64
import datetime
import hashlib
import hmac
import json
import re
import signal
import threading
import urllib.parse
import zlib
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from hub_server import Handler, Server

KEYS = {"AKIDTEST": ("a/secret+of/the-test", "")}  # by access key: the secret, and a session's token
EMPTY = hashlib.sha256(b"").hexdigest()


def etag_of(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def hmac256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Upload:
    def __init__(self, bucket, key):
        self.bucket, self.key, self.parts = bucket, key, {}


class S3(Server):
    """`buckets`: by name, objects by key. Each of the faults counts down: so many requests of its kind are answered so."""

    def __init__(self, buckets=None, keys=None, region="us-east-1", port=0):
        self.buckets = {name: dict(objects) for name, objects in (buckets or {}).items()}
        self.keys, self.region, self.uploads, self.lock = dict(keys or KEYS), region, {}, threading.RLock()
        self.busy = 0             # HTTP 503 SlowDown
        self.resets = 0           # the connection ends without an answer, and nothing is done
        self.lost_answers = 0     # … and what was asked for is done
        self.cuts, self.cut_after = 0, 1000  # of the body of a GET
        self.wrong_bytes = 0      # a byte of the body of a GET is another one
        self.wrong_uploads = 0    # a byte of the body of a PUT is another one
        self.late_errors = 0      # a CompleteMultipartUpload says 200 and then that it failed
        self.pause = threading.Event()
        self.pause.set()
        self.knows_conditions = True  # else If-Match and If-None-Match of a PUT are passed over
        self.tells_checksums = True
        self.page = 1000
        super().__init__(S3Handler)

    def takes(self, fault):
        with self.lock:
            if getattr(self, fault) <= 0:
                return False
            setattr(self, fault, getattr(self, fault) - 1)
            return True

    def put(self, bucket, key, body):
        self.buckets.setdefault(bucket, {})[key] = body
        self.parted = getattr(self, "parted", set()) - {(bucket, key)}


class Refused(Exception):
    def __init__(self, status, code, message="", **more):
        self.status, self.code, self.message, self.more = status, code, message, more


class Body(Handler):
    """Reads bodies, and answers all methods."""

    def do_GET(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        super().do_GET()

    do_PUT = do_POST = do_DELETE = do_GET


class S3Handler(Body):
    def reply(self):
        server = self.server
        if self.path == "/_faults":
            for name, value in json.loads(self.body).items():
                setattr(server, name, value)
            return self.send(200)
        server.pause.wait(20)
        if server.takes("busy"):
            return self.refuse(Refused(503, "SlowDown", "Please reduce your request rate."))
        if server.takes("resets"):
            return self.hang_up()
        if self.command == "PUT" and self.body and server.takes("wrong_uploads"):
            self.body = bytes([self.body[0] ^ 1]) + self.body[1:]
        try:
            self.check_signature()
            self.answer()
        except Refused as refused:
            self.refuse(refused)

    def hang_up(self):
        self.close_connection = True
        self.connection.close()

    def send(self, status, headers=None, body=b"", length=None):
        if self.command in ("PUT", "POST", "DELETE") and self.path != "/_faults" and status < 300 and self.server.takes("lost_answers"):
            return self.hang_up()
        return super().send(status, headers, body, length)

    def refuse(self, refused):
        more = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in refused.more.items() if name != "headers")
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message>{more}</Error>'
        self.send(refused.status, {"Content-Type": "application/xml"} | refused.more.get("headers", {}), body.encode())

    def check_signature(self):
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization") or "")
        if not match:
            raise Refused(403, "AccessDenied", "Access Denied")
        access, date, region, names, signature = match.groups()
        if access not in self.server.keys:
            raise Refused(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
        secret, token = self.server.keys[access]
        if token == "expired":
            raise Refused(400, "ExpiredToken", "The provided token has expired.")
        if (self.headers.get("x-amz-security-token") or "") != token:
            raise Refused(403, "InvalidToken", "The provided token is malformed or otherwise invalid.")
        if region != self.server.region:
            raise Refused(400, "AuthorizationHeaderMalformed", f"The authorization header is malformed; the region '{region}' is wrong",
                          Region=self.server.region, headers={"x-amz-bucket-region": self.server.region})
        path, _, query = self.path.partition("?")
        pairs = sorted(tuple(urllib.parse.quote(urllib.parse.unquote(part), safe="-_.~") for part in (pair.split("=", 1) + [""])[:2])
                       for pair in query.split("&") if pair)
        headers = "".join(f"{name}:{' '.join((self.headers.get(name) or '').split())}\n" for name in names.split(";"))
        payload = self.headers["x-amz-content-sha256"]
        canonical = "\n".join([self.command, path, "&".join(f"{name}={value}" for name, value in pairs), headers, names, payload])
        time, scope = self.headers["x-amz-date"], f"{date}/{region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = hmac256(hmac256(hmac256(hmac256(("AWS4" + secret).encode(), date), region), "s3"), "aws4_request")
        must = {"host", "x-amz-date", "x-amz-content-sha256"} | {name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        if not must <= set(names.split(";")) or not hmac.compare_digest(hmac256(key, to_sign).hex(), signature):
            raise Refused(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
        skew = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.strptime(time + "+0000", "%Y%m%dT%H%M%SZ%z")
        if abs(skew) > datetime.timedelta(minutes=15):
            raise Refused(403, "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large.")
        if payload != "UNSIGNED-PAYLOAD" and payload != hashlib.sha256(self.body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")

    def answer(self):
        parts = urllib.parse.urlsplit(self.path)
        bucket, _, key = parts.path[1:].partition("/")
        key, query = urllib.parse.unquote(key), dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        with self.server.lock:
            objects = self.server.buckets.get(bucket)
        if objects is None:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist", BucketName=bucket)
        if not key:
            return self.list(bucket, objects, query)
        if "uploads" in query or "uploadId" in query:
            return self.upload(bucket, objects, key, query)
        return {"GET": self.read, "HEAD": self.read, "PUT": self.write, "DELETE": self.remove}[self.command](bucket, objects, key)

    def list(self, bucket, objects, query):
        prefix = query.get("prefix", "")
        keys = [key for key in sorted(objects) if key.startswith(prefix) and key > query.get("continuation-token", "")]
        page, text = keys[:self.server.page], ""
        for key in page:
            text += f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/')}</Key><Size>{len(objects[key])}</Size>" \
                    f"<ETag>{escape(self.etag(bucket, key), {chr(34): '&quot;'})}</ETag></Contents>"
        more = len(keys) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{bucket}</Name>' \
               f"<EncodingType>url</EncodingType><KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}{text}</ListBucketResult>"
        self.send(200, {"Content-Type": "application/xml"}, body.encode())

    def etag(self, bucket, key):
        body, parted = self.server.buckets[bucket][key], getattr(self.server, "parted", set())
        return etag_of(body)[:-1] + '-2"' if (bucket, key) in parted else etag_of(body)

    def read(self, bucket, objects, key):
        if key not in objects:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.", Key=key)
        body, etag, server = objects[key], self.etag(bucket, key), self.server
        if self.headers.get("If-Match") not in (None, etag):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        headers, status, begin, end = {"ETag": etag, "Accept-Ranges": "bytes"}, 200, 0, len(body)
        if server.tells_checksums and self.headers.get("x-amz-checksum-mode") == "ENABLED":
            headers |= {"x-amz-checksum-crc32": base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode(), "x-amz-checksum-type": "FULL_OBJECT"}
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            begin, end = int(match[1]), min(int(match[2]) + 1, len(body)) if match[2] else len(body)
            if begin >= len(body):
                raise Refused(416, "InvalidRange", "The requested range is not satisfiable")
            status, headers["Content-Range"] = 206, f"bytes {begin}-{end - 1}/{len(body)}"
        rest = body[begin:end]
        if self.command == "GET" and rest and server.takes("wrong_bytes"):
            rest = bytes([rest[0] ^ 1]) + rest[1:]
        if self.command == "GET" and len(rest) > server.cut_after and server.takes("cuts"):
            self.send(status, headers, rest[:server.cut_after], len(rest))
            self.close_connection = True
            return None
        return self.send(status, headers, rest)

    def require(self, bucket, objects, key):
        if not self.server.knows_conditions:
            return
        if self.headers.get("If-None-Match") == "*" and key in objects:
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", Condition="If-None-Match")
        wanted = self.headers.get("If-Match")
        if wanted and key not in objects:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.", Key=key)
        if wanted and wanted != self.etag(bucket, key):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", Condition="If-Match")

    def write(self, bucket, objects, key):
        with self.server.lock:
            self.require(bucket, objects, key)
            objects[key] = self.body
            self.server.parted = getattr(self.server, "parted", set()) - {(bucket, key)}
        return self.send(200, {"ETag": etag_of(self.body)})

    def remove(self, bucket, objects, key):
        with self.server.lock:
            objects.pop(key, None)
        return self.send(204)

    def upload(self, bucket, objects, key, query):
        server, number = self.server, query.get("uploadId")
        with server.lock:
            if "uploads" in query and self.command == "POST":
                number = str(len(server.asked)) + "-upload"
                server.uploads[number] = Upload(bucket, key)
                return self.send(200, {}, f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                                          f"<UploadId>{number}</UploadId></InitiateMultipartUploadResult>".encode())
            upload = server.uploads.get(number)
            if upload is None or (upload.bucket, upload.key) != (bucket, key):
                raise Refused(404, "NoSuchUpload", "The specified multipart upload does not exist.")
            if self.command == "PUT":
                upload.parts[int(query["partNumber"])] = self.body
            elif self.command == "DELETE":
                del server.uploads[number]
                return self.send(204)
        if self.command == "PUT":
            return self.send(200, {"ETag": etag_of(self.body)})
        if server.takes("late_errors"):
            return self.send(200, {}, b"<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>")
        listed = [(int(part.findtext("{*}PartNumber")), part.findtext("{*}ETag")) for part in ElementTree.fromstring(self.body)]
        if not listed or any(part not in upload.parts or etag_of(upload.parts[part]) != etag for part, etag in listed):
            raise Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
        if any(len(upload.parts[part]) < 5 << 20 for part, _ in listed[:-1]):
            raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size.")
        with server.lock:
            self.require(bucket, objects, key)
            objects[key] = b"".join(upload.parts[part] for part, _ in listed)
            server.parted = getattr(server, "parted", set()) | {(bucket, key)}
            del server.uploads[number]
        return self.send(200, {}, f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>{escape(self.etag(bucket, key))}</ETag>"
                                  "</CompleteMultipartUploadResult>".encode())


class Giver(Server):
    """Gives credentials: as IMDSv2, as an agent of containers, as STS. `given` is what it gives."""

    def __init__(self, given, token="", role="a-role"):
        self.given, self.token, self.role, self.expiration = given, token, role, "2099-01-01T00:00:00Z"
        super().__init__(GiverHandler)

    def json(self, **more):
        access, secret, token = self.given
        return json.dumps({"AccessKeyId": access, "SecretAccessKey": secret, "Token": token, "Expiration": self.expiration} | more).encode()


class GiverHandler(Body):
    def reply(self):
        server, imds = self.server, "/latest/meta-data/iam/security-credentials/"
        if self.path == "/latest/api/token":
            allowed = self.command == "PUT" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            return self.send(200, {}, b"a-token-of-imds") if allowed else self.send(403)
        if self.path.startswith(imds):
            if self.headers.get("X-aws-ec2-metadata-token") != "a-token-of-imds":
                return self.send(401)
            if self.path == imds:
                return self.send(200, {}, server.role.encode())
            return self.send(200, {}, server.json(Code="Success")) if self.path == imds + server.role else self.send(404)
        if self.path == "/v1/credentials":
            return self.send(200, {}, server.json()) if self.headers.get("Authorization") == server.token else self.send(401)
        asked = dict(urllib.parse.parse_qsl(self.body.decode()))
        if self.command == "POST" and asked.get("Action") == "AssumeRoleWithWebIdentity":
            if asked["WebIdentityToken"] != server.token:
                return self.send(400, {}, b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
                                          b"<Code>InvalidIdentityToken</Code><Message>no</Message></Error></ErrorResponse>")
            access, secret, token = server.given
            return self.send(200, {}, '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>'
                                      f"<Credentials><AccessKeyId>{access}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
                                      f"<SessionToken>{token}</SessionToken><Expiration>{server.expiration}</Expiration></Credentials>"
                                      "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>".encode())
        return self.send(404)


if __name__ == "__main__":
    serving = S3({"bucket": {}})
    print(serving.url(), flush=True)
    signal.pause()
