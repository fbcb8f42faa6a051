"""The loader alone: how fast it is, what it waits for, and how it stops and goes on."""

import argparse
import json
import time

import forebay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a folder of images, a list, or shards")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--threads", default="auto", type=lambda text: text if text == "auto" else int(text))
    arguments = parser.parse_args()

    def make() -> forebay.ImageLoader:
        return forebay.ImageLoader(
            arguments.data,
            batch_size=arguments.batch_size,
            image_size=arguments.image_size,
            threads=arguments.threads,
            train=True,
            drop_last=False,
            errors="skip",
            output="numpy",
            return_index=True,
        )

    loader = make()
    print(loader)
    start, n_images = time.perf_counter(), 0
    for images, _, _ in loader:
        n_images += len(images)
    stats = loader.stats()
    print(f"{n_images / (time.perf_counter() - start):.0f} images/s with {stats['threads']} threads; {stats['failed']} failed")
    print("waited", {cause: f"{seconds:.3f} s" for cause, seconds in stats["wait_by_cause_s"].items()})

    # Stop after a third of the second epoch, and go on in another loader, as after a kill.
    seen = []
    for number, (_, _, indices) in enumerate(loader, 1):
        seen += indices.tolist()
        if number >= max(1, len(loader) // 3):
            break
    saved = json.dumps(loader.state_dict())
    resumed = make()
    resumed.load_state_dict(json.loads(saved))
    for _, _, indices in resumed:
        seen += indices.tolist()
    assert len(set(seen)) == len(seen), "no sample twice"
    print(f"stopped and went on: {len(seen)} samples, each once")


if __name__ == "__main__":
    main()
