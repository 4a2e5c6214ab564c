"""Usage: qdrant_engine.py PORT [LOG [POINTS]]

Qdrant's own engine (the package qdrant-edge-py) behind the part of its REST interface that codescout uses. The engine is the real
one; the interface is spoken by this file. LOG gets a line for each request: method, path, bytes of it and of the answer,
milliseconds in the engine. POINTS gets the points that are stored, a JSON object on each line.
"""

import json
import sys
import tempfile
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import qdrant_edge as edge

COLLECTIONS, LOCK = {}, threading.Lock()
POINTS = open(sys.argv[3], "a", buffering=1) if len(sys.argv) > 3 else None
DONE = {"operation_id": 0, "status": "completed"}


class Refused(Exception):
    def __init__(self, status, text):
        self.status, self.text = status, text


class Collection:
    def __init__(self, body):
        graph = lambda given: edge.HnswIndexConfig(given["m"], 100, 10_000)
        dense = lambda given: edge.EdgeVectorParams(
            given["size"],
            edge.Distance.Cosine,
            datatype=getattr(edge.VectorStorageDatatype, given.get("datatype", "float32").capitalize()),
            hnsw_config=graph(given["hnsw_config"]),
        )
        sparse = lambda given: edge.EdgeSparseVectorParams()
        config = {
            "vectors": {name: dense(given) for name, given in body["vectors"].items()},
            "sparse_vectors": {name: sparse(given) for name, given in body.get("sparse_vectors", {}).items()},
        }
        self.folder = tempfile.TemporaryDirectory()
        self.shard = edge.EdgeShard.create(self.folder.name, edge.EdgeConfig(**config))


def ids(texts):
    return [uuid.UUID(text) for text in texts]


def filter_of(body):
    if not body:
        return None

    def condition(given):
        return edge.FieldCondition(given["key"], match=edge.MatchAny(given["match"]["any"]))

    return edge.Filter(must=[condition(given) for given in body["must"]]) if body.get("must") else None


def vectors_of(point):
    vectors = point.vector
    if not isinstance(vectors, dict):
        return {} if vectors is None else {"": vectors}
    plain = {}
    for name, vector in vectors.items():
        sparse = hasattr(vector, "indices")
        plain[name] = {"indices": list(vector.indices), "values": list(vector.values)} if sparse else list(vector)
    return plain


def to_json(point, body, score=None):
    out = {"id": str(point.id)}
    if score is not None:
        out |= {"version": 0, "score": score}
    if body.get("with_payload"):
        out["payload"] = point.payload or {}
    if body.get("with_vector"):
        out["vector"] = vectors_of(point)
    return out


def put(shard, body):
    points = []
    for given in body["points"]:
        if POINTS:
            POINTS.write(json.dumps(given) + "\n")
        vectors = dict(given["vector"])
        if "sparse" in vectors:
            vectors["sparse"] = edge.SparseVector(**vectors["sparse"])
        points.append(edge.Point(uuid.UUID(given["id"]), vectors, given.get("payload") or {}))
    shard.update(edge.UpdateOperation.upsert_points(points))
    return DONE


def scroll(shard, body):
    offset = uuid.UUID(body["offset"]) if body.get("offset") else None
    request = edge.ScrollRequest(
        offset=offset,
        limit=body.get("limit", 10),
        filter=filter_of(body.get("filter")),
        with_payload=bool(body.get("with_payload")),
        with_vector=bool(body.get("with_vector")),
    )
    points, after = shard.scroll(request)
    return {"points": [to_json(point, body) for point in points], "next_page_offset": None if after is None else str(after)}


def query(shard, body):
    if body.get("query") is None:
        return {"points": [point | {"score": 0.0} for point in scroll(shard, body)["points"]]}
    vector = body["query"]
    request = edge.QueryRequest(
        body.get("limit", 10),
        offset=body.get("offset", 0),
        query=edge.Query.Nearest(edge.SparseVector(**vector) if isinstance(vector, dict) else vector, body["using"]),
        filter=filter_of(body.get("filter")),
        with_payload=bool(body.get("with_payload")),
    )
    return {"points": [to_json(point, body, point.score) for point in shard.query(request)]}


def of_collection(method, rest, collection, body):
    shard = collection.shard
    update = edge.UpdateOperation
    match (method, rest):
        case ("GET", []):
            return {"status": "green", "points_count": shard.count(edge.CountRequest()), "segments_count": 1, "config": {}}
        case ("PUT", ["index"]):
            shard.update(update.create_field_index(body["field_name"], edge.PayloadSchemaType.Keyword))
            return DONE
        case ("PUT", ["points"]):
            return put(shard, body)
        case ("POST", ["points"]):
            found = shard.retrieve(ids(body["ids"]), bool(body.get("with_payload")), bool(body.get("with_vector")))
            return [to_json(point, body) for point in found]
        case ("POST", ["points", "delete"]):
            shard.update(update.delete_points(ids(body["points"])))
            return DONE
        case ("POST", ["points", "scroll"]):
            return scroll(shard, body)
        case ("POST", ["points", "query", "batch"]):
            return [query(shard, search) for search in body["searches"]]
    raise Refused(404, "")


def answer(method, path, body):
    parts = path.split("?")[0].strip("/").split("/")
    match (method, parts):
        case ("GET", ["collections"]):
            return {"collections": [{"name": name} for name in COLLECTIONS]}
        case ("PUT", ["collections", name]):
            if name in COLLECTIONS:
                raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
            COLLECTIONS[name] = Collection(body)
            return True
        case (_, ["collections", name, *rest]):
            collection = COLLECTIONS.get(name)
            if collection is None:
                raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
            return of_collection(method, rest, collection, body)
    raise Refused(404, "")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/":
            return self.give(200, {"title": "qdrant", "version": "engine of qdrant-edge-py"})
        started = time.time()
        try:
            with LOCK:
                result = answer(self.command, self.path, json.loads(body) if body else {})
            n_bytes = self.give(200, {"result": result, "status": "ok", "time": time.time() - started})
            if len(sys.argv) > 2:
                path = "/".join(self.path.split("?")[0].split("/")[3:])
                with open(sys.argv[2], "a") as log:
                    print(self.command, path, len(body), n_bytes, round(1000 * (time.time() - started), 1), file=log)
        except Refused as refused:
            self.give(refused.status, {"status": {"error": refused.text}})
        except Exception as error:  # What the engine says of a request is the answer to it.
            self.give(400, {"status": {"error": f"{type(error).__name__}: {error}"}})

    do_GET = do_PUT = do_POST = handle_any

    def give(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return len(data)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
