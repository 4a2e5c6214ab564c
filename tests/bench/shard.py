"""Usage: shard.py POINTS FOLDER CHUNKS...

One shard of a large fleet, in Qdrant's own engine (qdrant-edge-py, numpy): what a question costs, by the number of chunks. POINTS
has the points of real repositories, one JSON object per line, as `codescout fleet index` sends them (the third argument of
peers/qdrant_engine.py records them). They are stored again and again, each time as other repositories: vectors with noise, and
words of at most three files replaced by others, because the identifiers of two repositories differ. FOLDER must not exist.
Prints a JSON object after each number of chunks.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
import uuid

import numpy as np
import qdrant_edge as edge

NOISE = 0.45  # of the length of a vector: the cosine of a chunk and its copy is 0.91
BATCH = 2_000
N_QUERIES = 60
LIMIT = 300
MAX_TERMS = 64
rng, dice = np.random.default_rng(1), random.Random(1)


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory():
    """Resident memory in MB: of the process alone, and of mapped files."""
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return [int(fields[name].split()[0]) // 1024 for name in ("RssAnon", "RssFile")]


def disk(folder):
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(os.stat(file).st_blocks * 512 for file in files) // 10**6


class Corpus:
    def __init__(self, path):
        vectors, self.chunks, self.files = [], [], []
        for line in open(path):
            point = json.loads(line)
            payload = point.get("payload") or {}
            if "dense" in point["vector"]:
                vectors.append(np.array(point["vector"]["dense"], dtype=np.float32))
                self.chunks.append(payload)
            elif "sparse" in point["vector"]:
                words = point["vector"]["sparse"]
                self.files.append((np.array(words["indices"]), np.array(words["values"]), payload))
        self.vectors = np.stack(vectors)
        terms, counts = np.unique(np.concatenate([terms for terms, _, _ in self.files]), return_counts=True)
        self.rare = set(terms[counts <= 3].tolist())
        self.count = dict(zip(terms.tolist(), counts.tolist()))

    def copy(self, number):
        """The points of all repositories, as if they were others."""
        noise = rng.normal(size=self.vectors.shape).astype(np.float32)
        vectors = self.vectors + NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        name = lambda payload: payload | {"repository": f"{payload['repository']}-{number}", "group": [f"g{number % 50}"]}
        for vector, payload in zip(vectors, self.chunks):
            yield edge.Point(uuid.UUID(int=dice.getrandbits(128)), {"dense": vector.tolist()}, name(payload))
        for terms, values, payload in self.files:
            own = [(term * 2654435761 + number) % 2**32 if number and term in self.rare else term for term in terms.tolist()]
            words = dict(zip(own, values.tolist()))
            fields = name(payload)
            if number and "names" in payload:
                fields["names"] = [f"{one}{number}" for one in payload["names"]]
            yield edge.Point(uuid.UUID(int=dice.getrandbits(128)), {"sparse": edge.SparseVector(list(words), list(words.values()))}, fields)


def create(folder):
    dense = edge.EdgeVectorParams(
        256, edge.Distance.Cosine, datatype=edge.VectorStorageDatatype.Turbo4, hnsw_config=edge.HnswIndexConfig(16, 100, 10_000)
    )
    sparse = edge.EdgeSparseVectorParams(datatype=edge.VectorStorageDatatype.Float16)
    os.makedirs(folder)
    config = edge.EdgeConfig(vectors={"dense": dense}, sparse_vectors={"sparse": sparse}, on_disk_payload=True)
    shard = edge.EdgeShard.create(folder, config)
    for field in ("repository", "group", "lang", "names"):
        shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
    return shard


def queries(corpus):
    """Chunks as questions by meaning, words of files as questions by words, names of definitions."""
    nearest = lambda vector, using, group=None: edge.QueryRequest(
        LIMIT, query=edge.Query.Nearest(vector, using), filter=group and any_of("group", [group])
    )
    any_of = lambda field, values: edge.Filter(must=[edge.FieldCondition(field, match=edge.MatchAny(values))])
    vectors = [corpus.vectors[at].tolist() for at in rng.integers(len(corpus.vectors), size=N_QUERIES)]
    words = []
    for at in rng.integers(len(corpus.files), size=N_QUERIES):
        terms = corpus.files[at][0]
        chosen = dice.sample(terms.tolist(), min(len(terms), dice.choice([3, 4, 5, 6, 8, 12])))
        weights = [float(np.log(1 + len(corpus.files) / corpus.count[term])) for term in chosen]
        words.append(edge.SparseVector(chosen, weights))
    names = [name for _, _, payload in corpus.files for name in payload.get("names", [])]
    named = [any_of("names", [name]) for name in dice.sample(names, N_QUERIES)]
    return {
        "by meaning": [nearest(vector, "dense") for vector in vectors],
        "by words": [nearest(one, "sparse") for one in words],
        "by meaning in a group": [nearest(vector, "dense", "g1") for vector in vectors],
        "by words in a group": [nearest(one, "sparse", "g1") for one in words],
        "by name": [edge.QueryRequest(100, filter=one) for one in named],
    }


def ask(shard, asked):
    row = {}
    for kind, requests in asked.items():
        took, used = [], cpu()
        for request in requests:
            began = time.perf_counter()
            shard.query(request)
            took.append((time.perf_counter() - began) * 1e3)
        took.sort()
        row[kind] = {
            "p50_ms": round(took[len(took) // 2], 1),
            "p95_ms": round(took[int(len(took) * 0.95)], 1),
            "cpu_ms": round((cpu() - used) * 1e3 / len(requests), 1),
        }
    return row


def ask_alone(points, folder):
    """Asks in this process, which stores nothing, so that its memory is that of a shard that answers."""
    asked = queries(Corpus(points))
    base = memory()
    shard = edge.EdgeShard.load(folder)
    loaded = [now - at for now, at in zip(memory(), base)]
    ask(shard, asked)  # reads what is needed from the disk
    row = {"loaded_mb": loaded, **ask(shard, asked)}
    row["memory_mb"] = [now - at for now, at in zip(memory(), base)]
    print(json.dumps(row))


def main():
    points, folder = sys.argv[1:3]
    if sys.argv[3] == "ask":
        return ask_alone(points, folder)
    corpus = Corpus(points)
    shard = create(folder)
    n_chunks = n_points = number = 0
    for goal in map(int, sys.argv[3:]):
        storing, n_before = 0.0, n_points
        while n_chunks < goal:
            copy = list(corpus.copy(number))
            began = cpu()
            for at in range(0, len(copy), BATCH):
                shard.update(edge.UpdateOperation.upsert_points(copy[at : at + BATCH]))
            storing += cpu() - began
            number += 1
            n_chunks += len(corpus.chunks)
            n_points += len(copy)
        del copy
        shard.flush()
        began, wall = cpu(), time.time()
        shard.optimize()
        optimising, wall = cpu() - began, time.time() - wall
        shard.close()
        row = {
            "chunks": n_chunks,
            "points": n_points,
            "stored": n_points - n_before,
            "store_cpu_s": round(storing, 1),
            "optimise_cpu_s": round(optimising, 1),
            "optimise_wall_s": round(wall, 1),
            "disk_mb": disk(folder),
        }
        asked = subprocess.run([sys.executable, sys.argv[0], points, folder, "ask"], capture_output=True, text=True, check=True)
        print(json.dumps(row | json.loads(asked.stdout)), flush=True)
        shard = edge.EdgeShard.load(folder)


main()
