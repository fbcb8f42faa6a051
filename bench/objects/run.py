"""Reads the same objects with forebay and with other clients, in turns, and prints processor time and rate of each.

Each run is a process of its own. Imports, listing and the first connection are not counted.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

BUCKET = "forebay-bench"
SMALL, LARGE = 112 * 1024, 16 << 20
N_SMALL, N_LARGE = 2_000, 16
CLIENTS = ["forebay", "obstore", "s3torchconnector", "boto3"]


def store(endpoint):
    import boto3

    return boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="testtest", region_name="us-east-1"
    )


def prepare(endpoint):
    """The objects, made once per server."""
    client = store(endpoint)
    client.create_bucket(Bucket=BUCKET)
    draw = random.Random(0)
    for n in range(N_SMALL):
        client.put_object(Bucket=BUCKET, Key=f"small/{n:05}", Body=draw.randbytes(SMALL))
    for n in range(N_LARGE):
        client.put_object(Bucket=BUCKET, Key=f"large/{n:05}", Body=draw.randbytes(LARGE))


def reads(mode, n, block, seed):
    """Keys and ranges in the order in which they are read."""
    if mode == "small":
        keys = [(f"small/{k:05}", 0, SMALL) for k in range(N_SMALL)]
        random.Random(seed).shuffle(keys)
        return keys[:n]
    return [(f"large/{k:05}", at, block) for k in range(N_LARGE) for at in range(0, LARGE, block)]


def forebay(args, keys):
    with tempfile.NamedTemporaryFile("w") as listed:
        names = dict.fromkeys(key for key, _, _ in keys)
        listed.write("".join(f"s3://{BUCKET}/{name}\n" for name in names))
        listed.flush()
        command = [args.program, listed.name, str(args.inflight)]
        command += [str(args.block)] if args.mode == "ranges" else []
        env = {
            "AWS_ENDPOINT_URL": args.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "testtest",
            "AWS_REGION": "us-east-1",
        }
        return json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def getter(name, args):
    """A function that reads a range of a key."""
    if name == "boto3":
        import boto3
        from botocore.config import Config

        client = boto3.client(
            "s3",
            endpoint_url=args.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="testtest",
            region_name="us-east-1",
            config=Config(max_pool_connections=args.inflight),
        )

        def get(key, at, size):
            extra = {"Range": f"bytes={at}-{at + size - 1}"} if args.mode == "ranges" else {}
            return len(client.get_object(Bucket=BUCKET, Key=key, **extra)["Body"].read())

    elif name == "obstore":
        import obstore

        bucket = obstore.store.S3Store(
            BUCKET,
            endpoint=args.endpoint,
            access_key_id="test",
            secret_access_key="testtest",
            region="us-east-1",
            client_options={"allow_http": True},
        )

        def get(key, at, size):
            if args.mode == "ranges":
                return len(obstore.get_range(bucket, key, start=at, length=size))
            return len(obstore.get(bucket, key).bytes())

    else:
        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="testtest")
        from s3torchconnector import S3ClientConfig, S3MapDataset, S3ReaderConstructor

        reader = S3ReaderConstructor.range_based(buffer_size=0) if args.mode == "ranges" else None
        dataset = S3MapDataset.from_objects(
            [f"s3://{BUCKET}/{key}" for key in dict.fromkeys(key for key, _, _ in args.keys)],
            region="us-east-1",
            endpoint=args.endpoint,
            s3client_config=S3ClientConfig(throughput_target_gbps=10, force_path_style=True),
            **({"reader_constructor": reader} if reader else {}),
        )
        index = {f"{entry.key}": n for n, entry in enumerate(dataset._dataset_bucket_key_pairs)}

        def get(key, at, size):
            opened = dataset[index[key]]
            if args.mode == "ranges":
                opened.seek(at)
                return len(opened.read(size))
            return len(opened.read())

    return get


def one(args):
    """One run of one client in this process."""
    import resource
    import time
    from concurrent.futures import ThreadPoolExecutor

    args.keys = reads(args.mode, args.n, args.block, args.seed)
    get = getter(args.client, args)
    get(*args.keys[0])

    def cpu():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    with ThreadPoolExecutor(args.inflight) as pool:
        before, start = cpu(), time.monotonic()
        n_bytes = sum(pool.map(lambda read: get(*read), args.keys))
        wall, used = time.monotonic() - start, cpu() - before
    return {"n": len(args.keys), "bytes": n_bytes, "wall_s": wall, "cpu_s": used}


def run_one(args, client, mode, inflight, block, seed):
    if client == "forebay":
        turn = argparse.Namespace(**{**vars(args), "mode": mode, "inflight": inflight, "block": block})
        return forebay(turn, reads(mode, args.n, block, seed))
    words = [sys.executable, __file__, args.endpoint, "--one", client, mode, str(inflight), str(block), str(seed), str(args.n)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"status {done.returncode}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("--program", help="the example object_reads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--one", nargs=6, metavar="WORD")
    args = parser.parse_args()
    if args.one:
        client, mode, *numbers = args.one
        inflight, block, seed, n = map(int, numbers)
        turn = argparse.Namespace(
            endpoint=args.endpoint, client=client, mode=mode, inflight=inflight, block=block, seed=seed, n=n
        )
        print(json.dumps(one(turn)))
        return
    prepare(args.endpoint)
    cases = [("small", inflight, SMALL) for inflight in (1, 16, 64)]
    cases += [("ranges", 8, 1 << 20), ("ranges", 4, 4 << 20), ("ranges", 1, 16 << 20)]
    results, missing = {}, {}
    for number in range(args.rounds):
        for mode, inflight, block in cases:
            for client in CLIENTS:
                if client in missing:
                    continue
                try:
                    found = run_one(args, client, mode, inflight, block, number)
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    missing[client] = str(error)
                    continue
                wanted = args.n * SMALL if mode == "small" else N_LARGE * LARGE
                assert found["bytes"] == wanted, (client, mode, found)
                results.setdefault((mode, inflight, block, client), []).append(found)
    print("| read | in flight | client | CPU | rate |\n|---|--:|---|--:|--:|")
    for (mode, inflight, block, client), runs in results.items():
        cpu = statistics.median(run["cpu_s"] for run in runs)
        wall = statistics.median(run["wall_s"] for run in runs)
        n, n_bytes = runs[0]["n"], runs[0]["bytes"]
        if mode == "small":
            row = ("112 KiB objects", f"{cpu / n * 1e6:.0f} ms per 1,000", f"{n / wall:.0f} objects/s")
        else:
            size = f"ranges of {block >> 20} MiB"
            row = (size, f"{cpu / n_bytes * 1e9:.2f} s per GB", f"{n_bytes / wall / 1e6:.0f} MB/s")
        print(f"| {row[0]} | {inflight} | {client} | {row[1]} | {row[2]} |")
    for client, why in missing.items():
        print(f"\nNot run: {client}: {why}")


if __name__ == "__main__":
    main()
