"""Makes the bucket of the tests: the client that is tested can use buckets, not make them."""

import sys

import boto3

endpoint, bucket = sys.argv[1:]
store = boto3.client(
    "s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="testtest", region_name="us-east-1"
)
store.create_bucket(Bucket=bucket)
