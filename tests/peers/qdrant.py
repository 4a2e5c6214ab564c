"""Usage: qdrant.py URL

Puts the same random points into the stub at URL, into a collection in memory of qdrant-client, and into Qdrant's own engine
(qdrant-edge-py, if it is there), asks all of them the same, and compares: ids in order where scores differ, and the scores.
"""

import json
import random
import sys
import tempfile
import urllib.request
import uuid

import numpy
from qdrant_client import QdrantClient, models

try:
    import qdrant_edge as edge
except ImportError:
    edge = None
    print("skipped: Qdrant's engine (qdrant-edge-py cannot be had)")

URL = sys.argv[1]
DIM, N_POINTS, N_QUESTIONS = 24, 400, 200
DICE = random.Random(7)
NUMBERS = numpy.random.default_rng(7)
REPOSITORIES = ["a" * 32, "b" * 32]


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["result"]


def point():
    """Mostly of a repository, with a dense vector and now and then a sparse one; some have neither."""
    vectors = {}
    if DICE.random() < 0.95:
        vectors["dense"] = NUMBERS.normal(size=DIM).round(4).tolist()
    if DICE.random() < 0.6:
        indices = sorted(DICE.sample(range(60), 8))
        vectors["sparse"] = {"indices": indices, "values": [round(DICE.random(), 4) for _ in indices]}
    payload = {"repository": DICE.choice(REPOSITORIES)} if DICE.random() < 0.95 else {"generation": "0" * 32}
    return {"id": str(uuid.UUID(int=DICE.getrandbits(128))), "vector": vectors, "payload": payload}


class Stub:
    name = "stub"

    def fill(self, points):
        schema = {"vectors": {"dense": {"size": DIM, "distance": "Cosine"}}, "sparse_vectors": {"sparse": {}}}
        call("PUT", "/collections/c-1", schema)
        call("POST", "/collections/aliases", {"actions": [{"create_alias": {"collection_name": "c-1", "alias_name": "c"}}]})
        status = call("PUT", "/collections/c/points?wait=true", {"points": points})["status"]
        assert status == "completed", status

    def ask(self, using, query, repository, ids, limit, offset):
        must = [{"key": "repository", "match": {"value": repository}}]
        if ids is not None:
            must.append({"has_id": ids})
        search = {"query": query, "using": using, "filter": {"must": must}, "limit": limit, "offset": offset}
        found = call("POST", "/collections/c/points/query/batch", {"searches": [search]})[0]["points"]
        return [(hit["id"], hit["score"]) for hit in found]

    def count(self, repository):
        body = {"filter": {"must": [{"key": "repository", "match": {"value": repository}}]}, "exact": True}
        return call("POST", "/collections/c/points/count", body)["count"]

    def with_field(self, key):
        body = {"filter": {"must_not": [{"is_empty": {"key": key}}]}, "limit": 10_000}
        return sorted(hit["id"] for hit in call("POST", "/collections/c/points/scroll", body)["points"])


class Memory:
    name = "qdrant-client in memory"

    def fill(self, points):
        self.client = QdrantClient(":memory:")
        self.client.create_collection(
            "c",
            vectors_config={"dense": models.VectorParams(size=DIM, distance=models.Distance.COSINE)},
            sparse_vectors_config={"sparse": models.SparseVectorParams()},
        )
        for given in points:
            vectors = dict(given["vector"])
            if "sparse" in vectors:
                vectors["sparse"] = models.SparseVector(**vectors["sparse"])
            self.client.upsert("c", [models.PointStruct(id=given["id"], vector=vectors, payload=given["payload"])])

    @staticmethod
    def filter(repository, ids):
        must = [models.FieldCondition(key="repository", match=models.MatchValue(value=repository))]
        if ids is not None:
            must.append(models.HasIdCondition(has_id=ids))
        return models.Filter(must=must)

    def ask(self, using, query, repository, ids, limit, offset):
        query = models.SparseVector(**query) if using == "sparse" else query
        found = self.client.query_points(
            "c", query=query, using=using, query_filter=self.filter(repository, ids), limit=limit, offset=offset
        )
        return [(hit.id, hit.score) for hit in found.points]

    def count(self, repository):
        return self.client.count("c", count_filter=self.filter(repository, None), exact=True).count

    def with_field(self, key):
        condition = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
        found, _ = self.client.scroll("c", scroll_filter=models.Filter(must_not=[condition]), limit=10_000)
        return sorted(hit.id for hit in found)


class Engine:
    name = "Qdrant's engine"

    def fill(self, points):
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(DIM, edge.Distance.Cosine)},
            sparse_vectors={"sparse": edge.EdgeSparseVectorParams()},
        )
        self.folder = tempfile.TemporaryDirectory()
        self.shard = edge.EdgeShard.create(self.folder.name, config)
        made = []
        for given in points:
            vectors = dict(given["vector"])
            if "sparse" in vectors:
                vectors["sparse"] = edge.SparseVector(**vectors["sparse"])
            made.append(edge.Point(uuid.UUID(given["id"]), vectors, given["payload"]))
        self.shard.update(edge.UpdateOperation.upsert_points(made))

    @staticmethod
    def filter(repository, ids):
        must = [edge.FieldCondition("repository", match=edge.MatchValue(repository))]
        if ids is not None:
            must.append(edge.HasIdCondition({uuid.UUID(known) for known in ids}))
        return edge.Filter(must=must)

    def ask(self, using, query, repository, ids, limit, offset):
        query = edge.SparseVector(**query) if using == "sparse" else query
        request = edge.QueryRequest(
            limit,
            offset=offset,
            query=edge.Query.Nearest(query, using),
            filter=self.filter(repository, ids),
            params=edge.SearchParams(exact=True),
        )
        return [(str(hit.id), hit.score) for hit in self.shard.query(request)]

    def count(self, repository):
        return self.shard.count(edge.CountRequest(filter=self.filter(repository, None)))

    def with_field(self, key):
        return None


def differs(ours, theirs):
    """Why two answers are not the same; equal scores may stand in any order."""
    if len(ours) != len(theirs):
        return f"{len(ours)} points, {len(theirs)} there"
    for rank, ((our_id, our_score), (their_id, their_score)) in enumerate(zip(ours, theirs)):
        if abs(our_score - their_score) > 1e-5:
            return f"rank {rank}: score {our_score}, {their_score} there"
        tied = [known for known, score in theirs if abs(score - our_score) < 1e-5]
        if our_id != their_id and our_id not in tied and rank < len(ours) - 1:
            return f"rank {rank}: {our_id}, {their_id} there"
    return None


def question(points):
    ids = None
    if DICE.random() < 0.4:
        # Some of them nobody has.
        ids = [known["id"] for known in DICE.sample(points, DICE.randint(1, 40))] + [str(uuid.UUID(int=DICE.getrandbits(128)))]
    limit, offset = DICE.choice([1, 10, 100, 1000]), DICE.choice([0, 0, 0, 5])
    if DICE.random() < 0.6:
        return "dense", NUMBERS.normal(size=DIM).round(4).tolist(), DICE.choice(REPOSITORIES), ids, limit, offset
    indices = sorted(DICE.sample(range(60), 5))
    query = {"indices": indices, "values": [round(DICE.random(), 4) for _ in indices]}
    return "sparse", query, DICE.choice(REPOSITORIES), ids, limit, offset


def main():
    points = [point() for _ in range(N_POINTS)]
    stub = Stub()
    stub.fill(points)
    peers = [Memory()] + ([Engine()] if edge else [])
    failed = False
    for peer in peers:
        peer.fill(points)
        n_wrong = {"dense": 0, "sparse": 0}
        n_asked = {"dense": 0, "sparse": 0}
        for _ in range(N_QUESTIONS):
            asked = question(points)
            n_asked[asked[0]] += 1
            why = differs(stub.ask(*asked), peer.ask(*asked))
            if why:
                n_wrong[asked[0]] += 1
                print(f"      {asked[0]} ids {None if asked[3] is None else len(asked[3])} limit {asked[4]}+{asked[5]}: {why}")
        for using, n in n_asked.items():
            verdict = "pass" if n_wrong[using] == 0 else "FAIL"
            failed |= n_wrong[using] > 0
            print(f"{verdict}  {peer.name}: {n - n_wrong[using]} of {n} {using} questions answered alike")
        counts = [stub.count(tag) == peer.count(tag) for tag in REPOSITORIES]
        fields = peer.with_field("generation")
        alike = all(counts) and fields in (None, stub.with_field("generation"))
        failed |= not alike
        print(f"{'pass' if alike else 'FAIL'}  {peer.name}: counts and fields")
    sys.exit(failed)


main()
