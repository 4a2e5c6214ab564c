"""Usage: qdrant_graph.py

With Qdrant's engine (the package qdrant-edge-py): the processor time of its optimizer with and without a graph, and how many of the ten
nearest vectors it finds with each compression, by how many are compared again. 12,000 vectors of 256 numbers in 300 clusters.
Needs numpy.
"""

import resource
import tempfile
import uuid

import numpy
import qdrant_edge as edge

N, DIM, N_QUESTIONS = 12_000, 256, 100
NUMBERS = numpy.random.default_rng(1)
CENTRES = NUMBERS.normal(size=(300, DIM))


def near_centres(n):
    return (CENTRES[NUMBERS.integers(300, size=n)] + 0.7 * NUMBERS.normal(size=(n, DIM))).astype("f4")


VECTORS, QUESTIONS = near_centres(N), near_centres(N_QUESTIONS)
VECTORS /= numpy.linalg.norm(VECTORS, axis=1, keepdims=True)
NEAREST = [set(numpy.argsort(-(VECTORS @ question))[:10]) for question in QUESTIONS]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def optimized(m, quantization):
    """A shard with all vectors, and the seconds that its optimizer took."""
    graph = edge.HnswIndexConfig(m, 100, 10, payload_m=m)
    dense = edge.EdgeVectorParams(DIM, edge.Distance.Cosine, hnsw_config=graph)
    optimizers = edge.EdgeOptimizersConfig(indexing_threshold=1000, default_segment_number=1)
    config = edge.EdgeConfig(vectors={"dense": dense}, optimizers=optimizers, quantization_config=quantization)
    shard = edge.EdgeShard.create(tempfile.mkdtemp(), config)
    shard.update(edge.UpdateOperation.create_field_index("repository", edge.PayloadSchemaType.Keyword))
    for start in range(0, N, 2000):
        rows = enumerate(VECTORS[start : start + 2000].tolist(), start + 1)
        points = [edge.Point(uuid.UUID(int=at), {"dense": row}, {"repository": "r"}) for at, row in rows]
        shard.update(edge.UpdateOperation.upsert_points(points))
    started = processor_seconds()
    shard.optimize()
    return shard, processor_seconds() - started


def found(shard, params):
    """The share of the ten nearest that is found."""
    only = edge.Filter(must=[edge.FieldCondition("repository", match=edge.MatchValue("r"))])
    n_found = 0
    for question, nearest in zip(QUESTIONS.tolist(), NEAREST):
        query = edge.Query.Nearest(question, "dense")
        hits = shard.query(edge.QueryRequest(10, query=query, filter=only, params=params))
        n_found += len(nearest & {hit.id.int - 1 for hit in hits})
    return n_found / (10 * N_QUESTIONS)


def main():
    compressions = {
        "none": None,
        "scalar": edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=True),
        "binary": edge.BinaryQuantizationConfig(always_ram=True),
        "product": edge.ProductQuantizationConfig(edge.CompressionRatio.X16, always_ram=True),
    }
    for m, name in [(0, "none")] + [(16, name) for name in compressions]:
        shard, seconds = optimized(m, compressions[name])
        parts = [f"exact {found(shard, edge.SearchParams(exact=True)):.3f}"]
        for times in (1.0, 2.0, 3.0, 4.0) if compressions[name] else ():
            again = edge.QuantizationSearchParams(rescore=True, oversampling=times)
            parts.append(f"{times:.0f}x {found(shard, edge.SearchParams(quantization=again)):.3f}")
        print(f"m {m}, compression {name}: {seconds:.1f} s of optimizer;", ", ".join(parts), flush=True)


main()
